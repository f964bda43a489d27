#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <sstream>
#include <string>

#include "neuropod/base/error.hh"
#include "neuropod/base/temporary_folder.hh"
#include "neuropod/internal/config_utils.hh"
#include "neuropod/internal/neuropod_loader.hh"
#include "neuropod/package/testing/raw_zip_writer.hh"

namespace neuropod {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// What upstream's packager writes for its addition model.
constexpr char kAddition[] = R"({
    "custom_ops": [],
    "input_spec": [
        {"dtype": "float32", "name": "x", "shape": ["batch_size"]},
        {"dtype": "float32", "name": "y", "shape": ["batch_size"]}
    ],
    "input_tensor_device": {"x": "GPU", "y": "CPU"},
    "name": "addition_model",
    "output_spec": [{"dtype": "float32", "name": "out", "shape": ["batch_size"]}],
    "platform": "torchscript",
    "platform_version_semver": ">=1.4.0 <3"
})";

std::unique_ptr<ModelConfig> load(const std::string& text) {
  std::istringstream stream(text);
  return load_model_config(stream);
}

std::string problem(const std::string& text) {
  try {
    load(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidPackage);
    EXPECT_THAT(error.message(), HasSubstr("config.json"));
    return error.message();
  }
  return "loaded";
}

// kAddition with `from` replaced by `to`.
std::string changed(const std::string& from, const std::string& to) {
  std::string text = kAddition;
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::string problem_with_shape(const std::string& shape) {
  return problem(
      R"({"name": "a", "platform": "b", "input_spec": [{"name": "x", "dtype": "int8", "shape": [1]},
                     {"name": "y", "dtype": "int8", "shape": )" +
      shape + "}]}");
}

std::string problem_with(const std::string& member) {
  return problem(
      R"({"name": "a", "platform": "b", "input_spec": [{"name": "x", "dtype": "int8", "shape": []}], )" +
      member + "}");
}

TEST(ModelConfigTest, ReadsWhatUpstreamWrites) {
  const auto config = load(kAddition);
  EXPECT_EQ(config->name, "addition_model");
  EXPECT_EQ(config->platform, "torchscript");
  EXPECT_EQ(config->platform_version_semver, ">=1.4.0 <3");
  ASSERT_EQ(config->inputs.size(), 2u);
  EXPECT_EQ(config->inputs[0].name, "x");
  EXPECT_EQ(config->inputs[1].name, "y");
  EXPECT_EQ(config->inputs[0].type, FLOAT_TENSOR);
  EXPECT_THAT(config->inputs[0].dims, ElementsAre(Dimension("batch_size")));
  EXPECT_FALSE(config->inputs[0].optional);
  ASSERT_EQ(config->outputs.size(), 1u);
  EXPECT_EQ(config->outputs[0].name, "out");
  EXPECT_EQ(config->input_tensor_device.at("x"), DeviceType::GPU);
  EXPECT_EQ(config->input_tensor_device.at("y"), DeviceType::CPU);
  EXPECT_EQ(config->format_version, 0);
  EXPECT_FALSE(config->stateful);
}

TEST(ModelConfigTest, OldPackagesNeedOnlyNameAndPlatform) {
  const auto config = load(R"({"name": "", "platform": "tensorflow"})");
  EXPECT_EQ(config->platform_version_semver, "*");
  EXPECT_THAT(config->inputs, IsEmpty());
  EXPECT_THAT(config->outputs, IsEmpty());
  EXPECT_THAT(config->custom_ops, IsEmpty());
  EXPECT_THAT(config->input_tensor_device, IsEmpty());
}

TEST(ModelConfigTest, InputsWithoutADeviceGoToTheGpu) {
  const auto config = load(changed(R"({"x": "GPU", "y": "CPU"})", R"({"y": "CPU"})"));
  EXPECT_EQ(config->input_tensor_device.at("x"), DeviceType::GPU);
}

TEST(ModelConfigTest, ReadsWhatWeAdd) {
  const auto config = load(R"({"name": "a", "platform": "b", "format_version": 1, "stateful": true,
      "version": "1.2", "description": "d", "author": "ä", "license": "MIT", "created": "2026-01-01",
      "custom_ops": ["op.so"], "something": {"later": [1]},
      "input_spec": [{"name": "x", "dtype": "bfloat16", "shape": [], "optional": true, "extra": 1},
                     {"name": "y", "dtype": "string", "shape": [null, 2147483647, "n"]}],
      "output_spec": [{"name": "z", "dtype": "int8", "shape": [], "optional": true}]})");
  EXPECT_EQ(config->format_version, 1);
  EXPECT_TRUE(config->stateful);
  EXPECT_EQ(config->version, "1.2");
  EXPECT_EQ(config->description, "d");
  EXPECT_EQ(config->author, "ä");
  EXPECT_EQ(config->license, "MIT");
  EXPECT_EQ(config->created, "2026-01-01");
  EXPECT_THAT(config->custom_ops, ElementsAre("op.so"));
  EXPECT_TRUE(config->inputs[0].optional);
  EXPECT_FALSE(config->outputs[0].optional);
  EXPECT_EQ(config->inputs[0].type, BFLOAT16_TENSOR);
  EXPECT_EQ(config->inputs[1].type, STRING_TENSOR);
  EXPECT_THAT(config->inputs[1].dims,
              ElementsAre(Dimension(-1), Dimension(2147483647), Dimension("n")));
}

TEST(ModelConfigTest, KnowsEveryDtype) {
  for (const char* dtype :
       {"float32", "float64", "string", "int8", "int16", "int32", "int64", "uint8", "uint16",
        "uint32", "uint64", "bool", "float16", "bfloat16", "complex64", "complex128"}) {
    const auto config = load(changed("float32", dtype));
    EXPECT_STREQ(get_dtype_name(config->inputs[0].type), dtype);
  }
}

TEST(ModelConfigTest, NamesAMissingKey) {
  EXPECT_THAT(problem(changed("\"name\": \"addition_model\",", "")),
              HasSubstr("'name' is missing"));
  EXPECT_THAT(problem(changed("\"platform\": \"torchscript\",", "")),
              HasSubstr("'platform' is missing"));
  EXPECT_THAT(problem(changed("\"name\": \"y\", ", "")),
              HasSubstr("'input_spec[1].name' is missing"));
  EXPECT_THAT(problem(changed("\"dtype\": \"float32\", \"name\": \"out\"", "\"name\": \"out\"")),
              HasSubstr("'output_spec[0].dtype' is missing"));
  EXPECT_THAT(problem(changed(", \"shape\": [\"batch_size\"]", "")),
              HasSubstr("'input_spec[0].shape' is missing"));
}

TEST(ModelConfigTest, NamesAKeyOfTheWrongType) {
  EXPECT_THAT(problem(changed("\"addition_model\"", "5")),
              HasSubstr("'name' must be a string, but is 5"));
  EXPECT_THAT(problem(changed("\"torchscript\"", "null")),
              HasSubstr("'platform' must be a string, but is null"));
  EXPECT_THAT(problem(changed("\"y\", \"shape\"", "[], \"shape\"")),
              HasSubstr("'input_spec[1].name' must be a string, but is an array"));
  EXPECT_THAT(problem(changed("\"float32\"", "32")),
              HasSubstr("'input_spec[0].dtype' must be a string, but is 32"));
  EXPECT_THAT(problem_with(R"("output_spec": {})"),
              HasSubstr("'output_spec' must be an array of specs, but is an object"));
  EXPECT_THAT(problem_with(R"("output_spec": [7])"),
              HasSubstr("'output_spec[0]' must be an object"));
  EXPECT_THAT(problem_with(R"("custom_ops": "op.so")"), HasSubstr("'custom_ops' must be an array"));
  EXPECT_THAT(problem_with(R"("custom_ops": ["a.so", 1])"), HasSubstr("'custom_ops[1]'"));
  EXPECT_THAT(problem_with(R"("input_tensor_device": "CPU")"),
              HasSubstr("'input_tensor_device' must be an object"));
  EXPECT_THAT(problem_with(R"("platform_version_semver": 1.4)"),
              HasSubstr("'platform_version_semver' must be a string, but is 1.4"));
  EXPECT_THAT(problem_with(R"("stateful": "yes")"),
              HasSubstr("'stateful' must be true or false, but is \"yes\""));
  EXPECT_THAT(problem_with(R"("author": ["me"])"), HasSubstr("'author' must be a string"));
}

TEST(ModelConfigTest, NamesABadDimension) {
  const std::pair<const char*, const char*> shapes[] = {
      {"[0]", "0"},
      {"[-3]", "-3"},
      {"[-1]", "-1"},
      {"[1.5]", "1.5"},
      {"[1.0]", "1.0"},
      {"[true]", "true"},
      {"[[]]", "an array"},
      {"[{}]", "an object"},
      {"[1099511627776]", "1099511627776"},
      {"[2147483648]", "2147483648"},
      {"[18446744073709551616]", "1.8446744073709552e+19"}};
  for (const auto& [shape, found] : shapes) {
    EXPECT_THAT(
        problem_with_shape(shape),
        AllOf(
            HasSubstr("'input_spec[1].shape[0]' must be an integer from 1 to 2147483647, null (any "
                      "size) or a string (a symbol)"),
            HasSubstr(std::string("but is ") + found)))
        << shape;
  }
  EXPECT_THAT(problem_with_shape("[1, null, 0]"), HasSubstr("'input_spec[1].shape[2]'"));
  EXPECT_THAT(problem_with_shape("null"),
              HasSubstr("'input_spec[1].shape' must be an array, but is null"));
  EXPECT_THAT(problem_with_shape("3"),
              HasSubstr("'input_spec[1].shape' must be an array, but is 3"));
}

TEST(ModelConfigTest, ListsTheDtypesThereAre) {
  EXPECT_THAT(problem(changed("float32", "float")),
              AllOf(HasSubstr("'input_spec[0].dtype' must be one of"), HasSubstr("float32"),
                    HasSubstr("bfloat16"), HasSubstr("but is \"float\"")));
}

TEST(ModelConfigTest, RefusesTwoTensorsOfOneName) {
  EXPECT_THAT(
      problem(changed("\"name\": \"y\"", "\"name\": \"x\"")),
      HasSubstr(
          "'input_spec[1].name' is 'x', which is the name of an earlier tensor of 'input_spec'"));
  EXPECT_EQ(problem(changed("\"name\": \"out\"", "\"name\": \"x\"")), "loaded");
}

TEST(ModelConfigTest, RefusesOtherDevicesAndUnknownInputs) {
  EXPECT_THAT(problem(changed("\"CPU\"", "\"TPU\"")),
              HasSubstr("'input_tensor_device['y']' must be \"CPU\" or \"GPU\", but is \"TPU\""));
  EXPECT_THAT(problem(changed("\"CPU\"", "0")), HasSubstr("but is 0"));
  EXPECT_THAT(problem(changed("\"y\": \"CPU\"", "\"z\": \"CPU\"")),
              HasSubstr("'input_tensor_device['z']': there is no input of that name"));
}

TEST(ModelConfigTest, RefusesARangeThatIsNone) {
  EXPECT_THAT(problem(changed(">=1.4.0 <3", "newest")),
              AllOf(HasSubstr("'platform_version_semver'"),
                    HasSubstr("'newest' is no valid version range")));
}

TEST(ModelConfigTest, RefusesCustomOpsOutsideTheirFolder) {
  for (const char* name : {"../op.so", "/lib/op.so", "sub/op.so", "..", "", "a\\\\b"}) {
    EXPECT_THAT(problem_with(std::string("\"custom_ops\": [\"") + name + "\"]"),
                HasSubstr("'custom_ops[0]'"))
        << name;
  }
}

TEST(ModelConfigTest, AsksForALaterNeuropodForALaterFormat) {
  EXPECT_THAT(problem_with(R"("format_version": 2)"),
              AllOf(HasSubstr("'format_version' is 2"), HasSubstr("up to version 1"),
                    HasSubstr("install a later")));
  for (const char* version : {"0", "-1", "1.0", "\"1\"", "true", "null"}) {
    EXPECT_THAT(problem_with(std::string("\"format_version\": ") + version),
                HasSubstr("'format_version' must be"))
        << version;
  }
}

TEST(ModelConfigTest, RefusesWhatIsNoJsonObject) {
  EXPECT_THAT(problem(""), HasSubstr("is no valid JSON"));
  EXPECT_THAT(problem("{\"name\": "), HasSubstr("is no valid JSON"));
  EXPECT_THAT(problem("\x80\x02}q"), HasSubstr("is no valid JSON"));
  EXPECT_THAT(problem("[1]"), HasSubstr("must hold an object, but holds an array"));
  EXPECT_THAT(problem("null"), HasSubstr("must hold an object, but holds null"));
  EXPECT_THAT(problem(std::string(kAddition) + "}"), HasSubstr("is no valid JSON"));
}

TEST(ModelConfigTest, SurvivesDeepAndLargeTexts) {
  EXPECT_THAT(problem(std::string(8000000, '[')), HasSubstr("nested too deeply"));
  std::string objects;
  for (int i = 0; i < 100000; ++i) objects += "{\"a\":";
  EXPECT_THAT(problem(objects), HasSubstr("nested too deeply"));
  EXPECT_THAT(problem(std::string(17 << 20, ' ')), HasSubstr("larger than 16 MiB"));
  EXPECT_THAT(problem("{\"name\": " + std::string(1000, '9') + "}"), HasSubstr("is no valid JSON"));
}

TEST(ModelConfigTest, ShortensLongValuesInMessages) {
  const std::string message = problem(changed("float32", std::string(100000, 'f')));
  EXPECT_LT(message.size(), 1000u);
}

TEST(ModelConfigTest, LoadsFromPackages) {
  const TemporaryFolder folder;
  write_file(folder.path() + "/directory/config.json", kAddition);
  write_file(folder.path() + "/zip", write_zip({{"config.json", kAddition}}));
  for (const char* form : {"/directory", "/zip"}) {
    EXPECT_EQ(load_model_config(folder.path() + form)->name, "addition_model");
    const auto loader = get_loader(folder.path() + form);
    EXPECT_EQ(load_model_config(*loader)->name, "addition_model");
  }
}

TEST(ModelConfigTest, TheManifestGivesTheFormatVersionThatTheConfigLeavesOut) {
  const auto version_of = [](const std::string& config, const std::string& more) {
    const TemporaryFolder folder;
    write_file(folder.path() + "/config.json", config);
    write_file(folder.path() + "/manifest.json",
               R"({"files": {}, "manifest_version": 1)" + more + "}");
    return load_model_config(folder.path())->format_version;
  };
  EXPECT_EQ(version_of(kAddition, ""), 0);
  EXPECT_EQ(version_of(kAddition, R"(, "format_version": 1)"), 1);
  EXPECT_EQ(version_of(R"({"name": "a", "platform": "b", "format_version": 1})", ""), 1);
  for (const char* version : {"2", "0", "-1", "1.0", "\"1\"", "null"}) {
    EXPECT_THROW(version_of(kAddition, std::string(", \"format_version\": ") + version), Error)
        << version;
  }
}

std::string code_and_message(const std::string& path) {
  try {
    load_model_config(path);
  } catch (const Error& error) {
    return std::string(to_string(error.code())) + ": " + error.message();
  }
  return "loaded";
}

TEST(ModelConfigTest, NamesThePackage) {
  const TemporaryFolder folder;
  write_file(folder.path() + "/none/other.json", kAddition);
  write_file(folder.path() + "/bad/config.json", "{}");
  EXPECT_THAT(code_and_message(folder.path() + "/none"),
              AllOf(HasSubstr("invalid_package"), HasSubstr(folder.path() + "/none"),
                    HasSubstr("no config.json")));
  EXPECT_THAT(code_and_message(folder.path() + "/bad"),
              AllOf(HasSubstr("invalid_package"), HasSubstr(folder.path() + "/bad"),
                    HasSubstr("'name' is missing")));
  EXPECT_THAT(code_and_message(folder.path() + "/nowhere"),
              AllOf(HasSubstr("not_found"), HasSubstr(folder.path() + "/nowhere")));
}

TEST(ModelConfigTest, ADamagedConfigIsCorruptNotInvalid) {
  const TemporaryFolder folder;
  RawZipEntry entry;
  entry.name = "config.json";
  entry.content = kAddition;
  entry.deflate = true;
  entry.crc = 1;
  write_file(folder.path() + "/zip", write_raw_zip({entry}));
  EXPECT_THAT(code_and_message(folder.path() + "/zip"), HasSubstr("corrupt_package"));
}

TEST(ModelConfigTest, RefusesAStreamThatFailed) {
  std::ifstream stream("/no/such/file");
  EXPECT_THROW(load_model_config(stream), Error);
}

TEST(TensorSpecTest, PrintsAsPeopleWriteIt) {
  EXPECT_EQ(to_string(TensorSpec("x", {"batch", 3, -1}, FLOAT_TENSOR)), "float32 (batch, 3, any)");
  EXPECT_EQ(to_string(TensorSpec("x", {4}, STRING_TENSOR)), "string (4,)");
  EXPECT_EQ(to_string(TensorSpec("x", {}, INT64_TENSOR)), "int64 ()");
}

TEST(DimensionTest, TakesEveryKindOfIntegerAndText) {
  EXPECT_EQ(Dimension(0).value, 0);
  EXPECT_EQ(Dimension(size_t{7}), Dimension(7));
  EXPECT_EQ(Dimension(-1), Dimension(int64_t{-1}));
  EXPECT_EQ(Dimension("n"), Dimension(std::string("n")));
  EXPECT_EQ(Dimension("n").value, -2);
  EXPECT_NE(Dimension("n"), Dimension("m"));
  EXPECT_NE(Dimension(-2), Dimension("n"));
}

}  // namespace
}  // namespace neuropod
