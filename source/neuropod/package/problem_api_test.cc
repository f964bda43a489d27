#include "neuropod/package/problem_api.hh"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <random>
#include <string>
#include <tuple>

#include "neuropod/base/error.hh"
#include "neuropod/base/temporary_folder.hh"

namespace neuropod {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

constexpr char kDetection[] = R"({
    "problem_api_version": 1,
    "input_spec": [
        {"name": "image", "dtype": "uint8", "shape": [1200, null, 3]},
        {"name": "threshold", "dtype": "float32", "shape": [], "optional": true}
    ],
    "output_spec": [
        {"name": "boxes", "dtype": "float32", "shape": ["num_detections", 4]}
    ]
}
)";

// kDetection with `from` replaced by `to`.
std::string changed(const std::string& from, const std::string& to) {
  std::string text = kDetection;
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::string problem(const std::string& text) {
  try {
    parse_problem_api(text, "api.json");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return error.message();
  }
  return "read";
}

TEST(ProblemApiTest, ReadsWhatItWrites) {
  const ProblemApi api = parse_problem_api(kDetection, "api.json");
  ASSERT_EQ(api.inputs.size(), 2u);
  EXPECT_THAT(api.inputs[0].dims, ElementsAre(Dimension(1200), Dimension(-1), Dimension(3)));
  EXPECT_TRUE(api.inputs[1].optional);
  EXPECT_THAT(api.outputs.at(0).dims, ElementsAre(Dimension("num_detections"), Dimension(4)));
  EXPECT_EQ(problem_api_text(api), kDetection);
}

TEST(ProblemApiTest, WritesAnApiWithoutTensors) {
  EXPECT_EQ(
      problem_api_text({}),
      "{\n    \"problem_api_version\": 1,\n    \"input_spec\": [],\n    \"output_spec\": []\n}\n");
}

TEST(ProblemApiTest, NamesThatNeedEscapingSurvive) {
  const std::string name = "a \"quoted\"\\ name\n\xc3\xa4";
  const ProblemApi api = {{{name, {Dimension(name)}, STRING_TENSOR}}, {}};
  const ProblemApi again = parse_problem_api(problem_api_text(api), "api.json");
  EXPECT_EQ(again.inputs.at(0).name, name);
  EXPECT_EQ(again.inputs.at(0).dims.at(0).symbol, name);
}

TEST(ProblemApiTest, RefusesToWriteWhatCannotBeRead) {
  const auto message = [](const TensorSpec& spec) -> std::string {
    try {
      return problem_api_text({{spec}, {}});
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      return error.message();
    }
  };
  EXPECT_THAT(message({"x", {0}, FLOAT_TENSOR}), HasSubstr("input_spec[0].shape[0]"));
  EXPECT_THAT(message({"", {}, FLOAT_TENSOR}), HasSubstr("must not be empty"));
  EXPECT_THAT(message({"\xff", {}, FLOAT_TENSOR}), HasSubstr("UTF-8"));
}

TEST(ProblemApiTest, WritesAndReadsFiles) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/api.json";
  write_problem_api(path, parse_problem_api(kDetection, "api.json"));
  EXPECT_EQ(problem_api_text(read_problem_api(path)), kDetection);
}

TEST(ProblemApiTest, AFileThatIsNotThereIsNotFound) {
  try {
    read_problem_api("/nowhere/api.json");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kNotFound);
    EXPECT_THAT(error.message(), HasSubstr("/nowhere/api.json"));
  }
}

TEST(ProblemApiTest, AFileThatCannotBeWrittenIsNamedWithTheReason) {
  try {
    write_problem_api("/nowhere/api.json", {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(error.message(), AllOf(HasSubstr("/nowhere/api.json"), HasSubstr("No such file")));
  }
}

TEST(ProblemApiTest, EachMistakeHasItsLineAndKey) {
  const std::vector<std::tuple<std::string, std::string, std::string>> mistakes = {
      // text, line, what the message says
      {"", "1", "no valid JSON"},
      {"[]", "1", "must be an object, but is an array"},
      {changed("\"uint8\",",
               "\"uint8\","
               ","),
       "4", "no valid JSON: syntax error"},
      {changed("[1200, null, 3]}", "[1200, null, 3]"), "5", "no valid JSON"},
      {changed("    \"problem_api_version\": 1,\n", ""), "1", "'problem_api_version' is missing"},
      {changed("version\": 1", "version\": 2"), "2", "'problem_api_version' must be 1"},
      {changed("version\": 1", "version\": \"1\""), "2", "but is \"1\""},
      {changed("\"output_spec\": [", "\"outputspec\": ["), "7",
       "'outputspec' is an unknown key; did you mean 'output_spec'?"},
      {"{\"problem_api_version\": 1,\n \"input_spec\": []}", "1", "'output_spec' is missing"},
      {"{\"problem_api_version\": 1,\n \"input_spec\": {}, \"output_spec\": []}", "2",
       "'input_spec' must be an array of specs, but is an object"},
      {"{\"problem_api_version\": 1, \"output_spec\": [],\n \"input_spec\": [\n3\n]}", "3",
       "'input_spec[0]' must be an object"},
      {changed("\"name\": \"boxes\", ", ""), "8", "'output_spec[0].name' is missing"},
      {changed("\"boxes\"", "\"\""), "8", "'output_spec[0].name' must not be empty"},
      {changed("\"boxes\"", "17"), "8", "'output_spec[0].name' must be a string, but is 17"},
      {changed("\"dtype\": \"uint8\", ", ""), "4", "'input_spec[0].dtype' is missing"},
      {changed("uint8", "unit8"), "4", "did you mean 'uint8'?"},
      {changed(", \"shape\": []", ""), "5", "'input_spec[1].shape' is missing"},
      {changed("\"shape\": []", "\"shape\": 3"), "5", "'input_spec[1].shape' must be an array"},
      {changed("1200, null", "0, null"), "4", "'input_spec[0].shape[0]' must be an integer from 1"},
      {changed("1200, null", "-1, null"), "4", "but is -1"},
      {changed("1200, null", "\n1.5,\nnull"), "5", "but is 1.5"},
      {changed("1200, null", "1200,\n\n true"), "6", "'input_spec[0].shape[1]'"},
      {changed("num_detections", ""), "8", "'output_spec[0].shape[0]' is an empty symbol"},
      {changed("\"threshold\"", "\"image\""), "5", "is the name of an earlier tensor"},
      {changed("\"optional\": true", "\"optional\": 1"), "5", "must be true or false, but is 1"},
      {changed("4]}", "4], \"optional\": true}"), "8", "only inputs can be optional"},
      {changed("\"optional\"", "\"optinal\""), "5",
       "'input_spec[1].optinal' is an unknown key; did you mean 'optional'?"},
      {changed("\"optional\": true", "\"device\":\n\"CPU\""), "5",
       "'input_spec[1].device' is an unknown key; known: name, dtype, shape, optional"},
      {changed("\"shape\": [],", "\"shape\": [],\n\"dtype\": \"int8\","), "6",
       "'input_spec[1].dtype' stands here a second time; the first is in line 5"},
      {changed("\"output_spec\"", "\"input_spec\""), "7",
       "'input_spec' stands here a second time; the first is in line 3"},
  };
  for (const auto& [text, line, expected] : mistakes) {
    EXPECT_THAT(problem(text), AllOf(StartsWith("api.json:" + line + ": "), HasSubstr(expected)))
        << text;
  }
}

TEST(ProblemApiTest, DeepNestingIsRefused) {
  EXPECT_THAT(problem(std::string(100000, '[')), HasSubstr("nested too deeply"));
}

// What is kept of the text must not grow with its square.
TEST(ProblemApiTest, ALongKeyAboveManyElementsIsNoBurden) {
  std::string elements = "0";
  for (int i = 0; i < 300000; ++i) elements += ",0";
  const std::string key(1000000, 'k');
  EXPECT_THAT(problem("{\n\"" + key + "\": [" + elements + "]}"),
              AllOf(StartsWith("api.json:2: 'kkk"), HasSubstr("unknown key")));
  EXPECT_THAT(problem("{\"" + key + "\": [" + elements + "],\n\"" + key + "\": 1}"),
              AllOf(StartsWith("api.json:2: 'kkk"), HasSubstr("the first is in line 1")));
}

TEST(ProblemApiTest, ADuplicateDeepInsideIsNamedByItsPath) {
  EXPECT_EQ(problem("{\"a\": [1, {\"b\": {\"c\": 1,\n\"c\": 2}}]}"),
            "api.json:2: 'a[1].b.c' stands here a second time; the first is in line 1");
}

TEST(ProblemApiTest, QuotesNoHalfCharacter) {
  std::string wide = "x";
  for (int i = 0; i < 60; ++i) wide += "\u00e9";
  const std::string text = problem(changed("uint8", wide));
  EXPECT_THAT(text, HasSubstr("\u00e9\u2026"));
}

TEST(ProblemApiTest, AFolderIsNoFile) {
  const TemporaryFolder folder;
  try {
    read_problem_api(folder.path());
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(error.message(), HasSubstr(folder.path()));
  }
}

// Whatever is cut off, doubled or replaced, the answer is an API or a message with a line.
TEST(ProblemApiTest, DamagedTextGivesAnApiOrALine) {
  std::mt19937 random(1);
  const std::string pieces = "{}[]\",:0-1\nen\\\xff x";
  for (int i = 0; i < 3000; ++i) {
    std::string text = kDetection;
    for (unsigned change = 0; change < 1 + random() % 3; ++change) {
      const size_t at = random() % text.size();
      if (random() % 2 == 0) {
        text[at] = pieces[random() % pieces.size()];
      } else {
        text.erase(at, 1 + random() % 4);
      }
    }
    const std::string message = problem(text);
    if (message != "read") {
      EXPECT_THAT(message, testing::MatchesRegex("api\\.json:[0-9]+: (.|\n)+")) << text;
    }
  }
}

}  // namespace
}  // namespace neuropod
