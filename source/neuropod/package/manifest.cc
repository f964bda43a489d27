#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "neuropod/base/error.hh"
#include "neuropod/internal/neuropod_loader.hh"
#include "neuropod/package/manifest.hh"
#include "neuropod/package/package_path.hh"

namespace neuropod {
namespace {

using Json = nlohmann::json;

constexpr int kManifestVersion = 1;
constexpr int kDeepestNesting = 16;
constexpr uint64_t kLargestManifest = uint64_t{64} << 20;
// Below this a thread costs more than it saves.
constexpr uint64_t kWorthAThread = uint64_t{4} << 20;
constexpr size_t kMostThreads = 4;

[[noreturn]] void fail(ErrorCode code, const std::string& problem) {
  throw_error(code, fmt::format("{}: {}", kManifestName, problem));
}

[[noreturn]] void fail_corrupt(const std::string& problem, std::string_view remedy) {
  throw_error(
      ErrorCode::kCorruptPackage,
      fmt::format("{}; the package was changed or damaged after it was made: {}", problem, remedy));
}

bool is_sha256(const std::string& text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

Json parse(const std::string& text) {
  const auto limit_depth = [](int depth, Json::parse_event_t, const Json&) {
    if (depth > kDeepestNesting) fail(ErrorCode::kInvalidPackage, "is nested too deeply");
    return true;
  };
  try {
    return Json::parse(text, limit_depth);
  } catch (const Json::exception& exception) {
    fail(ErrorCode::kCorruptPackage, fmt::format("is no valid JSON: {}", exception.what()));
  }
}

// The manifest, of a version that this library reads.
Json read_manifest(const std::string& manifest) {
  Json json = parse(manifest);
  if (!json.is_object()) fail(ErrorCode::kInvalidPackage, "must hold an object");
  const auto version = json.find("manifest_version");
  if (version == json.end() || !version->is_number_integer() || *version != kManifestVersion) {
    fail(ErrorCode::kInvalidPackage,
         fmt::format("'manifest_version' must be {}; a later version needs a later Neuropod",
                     kManifestVersion));
  }
  return json;
}

// Name to hash, sorted by name.
FileHashes read_hashes(const Json& manifest) {
  const auto files = manifest.find("files");
  if (files == manifest.end() || !files->is_object()) {
    fail(ErrorCode::kInvalidPackage, "'files' must be an object of names and hashes");
  }
  FileHashes hashes;
  for (const auto& [name, hash] : files->items()) {
    const std::string unsafe = why_unsafe_path(name);
    if (!unsafe.empty()) {
      fail(ErrorCode::kInvalidPackage, fmt::format("files['{}']: the name {}", name, unsafe));
    }
    if (name == kManifestName || name == kSignatureName) {
      fail(ErrorCode::kInvalidPackage,
           fmt::format("files['{}']: neither the manifest nor what signs it can be listed", name));
    }
    if (!hash.is_string() || !is_sha256(hash.get_ref<const std::string&>())) {
      fail(ErrorCode::kInvalidPackage,
           fmt::format("files['{}'] must be a SHA-256 in 64 lowercase hex digits", name));
    }
    hashes.emplace(name, hash.get<std::string>());
  }
  return hashes;
}

struct HashTask {
  std::string name;
  std::string expected;
  uint64_t size = 0;
  std::string actual;
  std::exception_ptr error;
};

void run_tasks(NeuropodLoader& loader, const std::vector<HashTask*>& tasks,
               std::atomic<size_t>* next) {
  for (size_t i = (*next)++; i < tasks.size(); i = (*next)++) {
    try {
      tasks[i]->actual = loader.get_hash_for_file(tasks[i]->name);
    } catch (...) {
      tasks[i]->error = std::current_exception();
    }
  }
}

// Computes the hashes, the largest files first so that threads end together.
void hash_files(NeuropodLoader& loader, std::vector<HashTask>* tasks) {
  std::vector<HashTask*> order;
  size_t worth_a_thread = 0;
  for (HashTask& task : *tasks) {
    order.push_back(&task);
    worth_a_thread += task.size >= kWorthAThread;
  }
  std::sort(order.begin(), order.end(),
            [](const HashTask* a, const HashTask* b) { return a->size > b->size; });
  const size_t threads =
      std::min({kMostThreads, worth_a_thread, size_t{std::thread::hardware_concurrency()}});
  std::atomic<size_t> next{0};
  std::vector<std::thread> others;
  try {
    while (others.size() + 1 < threads) {
      others.emplace_back([&] { run_tasks(loader, order, &next); });
    }
  } catch (const std::system_error&) {
    // No thread to be had: those that run do it all.
  }
  run_tasks(loader, order, &next);
  for (std::thread& other : others) other.join();
}

}  // namespace

bool has_file(NeuropodLoader& loader, const std::string& name) {
  const std::vector<std::string> files = loader.list_files();
  return std::binary_search(files.begin(), files.end(), name);
}

int read_manifest_format_version(NeuropodLoader& loader) {
  if (!has_file(loader, kManifestName)) return 0;
  const Json manifest = read_manifest(read_manifest_bytes(loader));
  const auto version = manifest.find("format_version");
  if (version == manifest.end()) return 0;
  if (!version->is_number_integer() || *version < 1 || *version > kNewestFormatVersion) {
    fail(ErrorCode::kInvalidPackage,
         fmt::format("'format_version' is {}, but this Neuropod reads packages of versions 1 to "
                     "{}; a later package needs a later Neuropod",
                     version->dump(), kNewestFormatVersion));
  }
  return version->get<int>();
}

std::string read_manifest_bytes(NeuropodLoader& loader) {
  if (loader.get_file_size(kManifestName) > kLargestManifest) {
    fail(ErrorCode::kInvalidPackage, "is larger than 64 MiB");
  }
  return loader.read_file(kManifestName);
}

FileHashes parse_manifest(const std::string& manifest) {
  return read_hashes(read_manifest(manifest));
}

std::string make_manifest(NeuropodLoader& loader) {
  Json files = Json::object();
  for (const std::string& name : loader.list_files()) {
    if (name != kManifestName && name != kSignatureName) {
      files[name] = loader.get_hash_for_file(name);
    }
  }
  const Json manifest = {{"files", std::move(files)}, {"manifest_version", kManifestVersion}};
  try {
    return manifest.dump(4);
  } catch (const Json::exception&) {
    throw_error(ErrorCode::kInvalidPackage,
                "it holds a file whose name isn't UTF-8, which a manifest can't list");
  }
}

void check_file_names(NeuropodLoader& loader, const FileHashes& hashes, std::string_view remedy) {
  const std::vector<std::string> files = loader.list_files();
  for (const auto& [name, hash] : hashes) {
    if (!std::binary_search(files.begin(), files.end(), name)) {
      fail_corrupt(fmt::format("file '{}' is listed in {} but missing", name, kManifestName),
                   remedy);
    }
  }
  for (const std::string& name : files) {
    if (name != kManifestName && name != kSignatureName && hashes.count(name) == 0) {
      fail_corrupt(fmt::format("file '{}' isn't listed in {}", name, kManifestName), remedy);
    }
  }
}

void verify_files(NeuropodLoader& loader, const FileHashes& hashes, std::string_view remedy) {
  check_file_names(loader, hashes, remedy);
  std::vector<HashTask> tasks;
  for (const auto& [name, hash] : hashes) {
    tasks.push_back({name, hash, loader.get_file_size(name), "", nullptr});
  }
  hash_files(loader, &tasks);
  for (const HashTask& task : tasks) {
    if (task.error) std::rethrow_exception(task.error);
    if (task.actual != task.expected) {
      throw_hash_differs(task.name, task.actual, task.expected, remedy);
    }
  }
}

void throw_hash_differs(const std::string& name, const std::string& actual,
                        const std::string& expected, std::string_view remedy) {
  fail_corrupt(fmt::format("file '{}' has SHA-256 {}, expected {} ({})", name, actual, expected,
                           kManifestName),
               remedy);
}

void verify_manifest(NeuropodLoader& loader) {
  if (!has_file(loader, kManifestName)) return;
  verify_files(loader, parse_manifest(read_manifest_bytes(loader)),
               "get it again, or load it with verify_hashes=false if that was on purpose");
}

}  // namespace neuropod
