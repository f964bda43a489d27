#include "neuropod/testing/contract_suite/fixtures.hh"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace neuropod::contract {
namespace {

namespace fs = std::filesystem;

const std::vector<std::string> kDtypes{
    "float32", "float64", "string", "int8", "int16",   "int32",    "int64",     "uint8",
    "uint16",  "uint32",  "uint64", "bool", "float16", "bfloat16", "complex64", "complex128"};
constexpr int kMaxRank = 6;
const std::vector<std::string> kSwitches{
    "zero_size", "string_nul",        "zero_copy_in",          "zero_copy_out",
    "device",    "outputs_on_device", "corrupt_model_detected"};
const std::vector<std::string> kPackages{"identity", "identity_zip", "addition", "strings",
                                         "failing",  "optional",     "stateful", "transpose",
                                         "alias",    "inplace",      "outputs",  "parameter"};

std::string read_text(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("can't open " + path.string());
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

const Json& required(const Json& json, const std::string& key) {
  if (!json.contains(key)) throw std::runtime_error("the fixtures file lacks '" + key + "'");
  return json.at(key);
}

template <typename T>
std::string list(const std::vector<T>& items) {
  std::ostringstream text;
  for (const T& item : items) text << (&item == items.data() ? "" : ", ") << item;
  return text.str();
}

const Fixtures* current_fixtures = nullptr;

}  // namespace

Fixtures::Fixtures(const fs::path& file) {
  const Json json = Json::parse(read_text(file));
  platform_ = required(json, "platform");
  model_file_ = required(json, "model_file");
  failing_message_ = required(json, "failing_message");
  for (const auto& [name, path] : required(json, "packages").items()) {
    if (name != "identity_string" &&
        std::find(kPackages.begin(), kPackages.end(), name) == kPackages.end()) {
      throw std::runtime_error("'" + name + "' is no package of the contract suite");
    }
    packages_[name] = (fs::absolute(file).parent_path() / path.get<std::string>()).string();
  }
  read_capabilities(required(json, "capabilities"));
  if (json.contains("reasons")) reasons_ = json.at("reasons");
}

void Fixtures::read_capabilities(const Json& json) {
  capabilities_.dtypes = required(json, "dtypes").get<std::vector<std::string>>();
  capabilities_.max_rank = required(json, "max_rank");
  capabilities_.string_ranks = required(json, "string_ranks").get<std::vector<int>>();
  for (const std::string& key : kSwitches) capabilities_.switches[key] = required(json, key);
  for (const std::string& dtype : capabilities_.dtypes) {
    if (std::find(kDtypes.begin(), kDtypes.end(), dtype) == kDtypes.end()) {
      throw std::runtime_error("capabilities: '" + dtype + "' is no dtype");
    }
  }
}

std::string Fixtures::reason(const std::string& key) const {
  const auto found = reasons_.find(key);
  return found != reasons_.end() ? found->second : "";
}

std::vector<std::string> Fixtures::limits() const {
  std::vector<std::string> keys;
  if (capabilities_.dtypes.size() < kDtypes.size()) keys.emplace_back("dtypes");
  if (capabilities_.max_rank < kMaxRank) keys.emplace_back("max_rank");
  if (capabilities_.string_ranks.size() < size_t(kMaxRank) + 1) keys.emplace_back("string_ranks");
  for (const auto& [key, able] : capabilities_.switches) {
    if (!able) keys.push_back(key);
  }
  for (const std::string& name : kPackages) {
    if (!has_package(name)) keys.push_back(name);
  }
  return keys;
}

std::string Fixtures::describe() const {
  std::ostringstream text;
  const auto row = [&](const std::string& key, const std::string& able) {
    text << "| " << key << " | " << able << " | " << reason(key) << " |\n";
  };
  text << "| capability | " << platform_ << " | why not more |\n| --- | --- | --- |\n";
  row("dtypes", capabilities_.dtypes.size() == kDtypes.size() ? "all" : list(capabilities_.dtypes));
  row("max_rank", std::to_string(capabilities_.max_rank));
  row("string_ranks", list(capabilities_.string_ranks));
  for (const std::string& key : kSwitches) row(key, capabilities_.switches.at(key) ? "yes" : "no");
  for (const std::string& name : kPackages) {
    if (!has_package(name)) row("model `" + name + "`", "no");
  }
  return text.str();
}

const Fixtures& fixtures() { return *current_fixtures; }

void set_fixtures(const Fixtures* fixtures) { current_fixtures = fixtures; }

PackageVariant::PackageVariant(const std::string& package, const Edit& edit) {
  fs::copy(package, path(), fs::copy_options::recursive);
  fs::remove(fs::path(path()) / "manifest.json");
  Json config = Json::parse(read_text(fs::path(path()) / "config.json"));
  if (edit) edit(config);
  write("config.json", config.dump(4));
}

void PackageVariant::write(const std::string& name, const std::string& content) const {
  const fs::path file = fs::path(path()) / name;
  fs::create_directories(file.parent_path());
  fs::permissions(path(), fs::perms::owner_all, fs::perm_options::add);
  fs::remove(file);
  std::ofstream(file, std::ios::binary) << content;
}

void set_spec(Json& config, const std::string& side, const std::string& name,
              const std::string& dtype, const Json& shape) {
  for (Json& spec : config.at(side)) {
    if (spec.at("name") != name) continue;
    spec["dtype"] = dtype;
    spec["shape"] = shape;
    return;
  }
  throw std::runtime_error("the package has no '" + name + "' in its " + side);
}

}  // namespace neuropod::contract
