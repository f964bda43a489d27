#include "neuropod/package/call_plan.hh"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "neuropod/base/error.hh"
#include "neuropod/core/generic_tensor.hh"

namespace {

std::atomic<size_t> allocations{0};

}  // namespace

// Counts what this program allocates, to prove that a call that passes allocates nothing.
[[gnu::noinline]] void* operator new(size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace neuropod {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::shared_ptr<NeuropodTensor> tensor(TensorType type, const std::vector<int64_t>& dims) {
  static const std::unique_ptr<NeuropodTensorAllocator> allocator = get_generic_tensor_allocator();
  return allocator->allocate_tensor(dims, type);
}

std::shared_ptr<NeuropodTensor> floats(const std::vector<int64_t>& dims) {
  return tensor(FLOAT_TENSOR, dims);
}

std::string numbered(std::string name, int number) { return name.append(std::to_string(number)); }

// "code: message", or "passed".
template <typename Action>
std::string outcome(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return std::string(to_string(error.code())) + ": " + error.message();
  }
  return "passed";
}

// A whole call's checks.
std::string call(const CallPlan& plan, const NeuropodValueMap& inputs,
                 const NeuropodValueMap& outputs, const std::vector<std::string>& requested = {}) {
  return outcome([&] {
    BoundInputs bound(plan.num_inputs());
    SymbolBindings symbols(plan.num_symbols());
    plan.bind(inputs, &bound);
    plan.check_inputs(bound, &symbols);
    plan.check_outputs(outputs, requested, &symbols);
  });
}

std::string inputs_of(const CallPlan& plan, const NeuropodValueMap& inputs) {
  return outcome([&] {
    BoundInputs bound(plan.num_inputs());
    SymbolBindings symbols(plan.num_symbols());
    plan.bind(inputs, &bound);
    plan.check_inputs(bound, &symbols);
  });
}

const std::vector<TensorSpec>& image_inputs() {
  static const std::vector<TensorSpec> specs = {
      {"image", {"batch", 4, -1}, FLOAT_TENSOR},
      {"label", {"batch"}, STRING_TENSOR},
      {"scale", {}, DOUBLE_TENSOR, /*optional=*/true},
  };
  return specs;
}

const std::vector<TensorSpec>& score_outputs() {
  static const std::vector<TensorSpec> specs = {{"scores", {"batch", "classes"}, FLOAT_TENSOR},
                                                {"classes", {"classes"}, STRING_TENSOR}};
  return specs;
}

NeuropodValueMap good_inputs() {
  return {{"image", floats({2, 4, 7})}, {"label", tensor(STRING_TENSOR, {2})}};
}

NeuropodValueMap good_outputs() {
  return {{"scores", floats({2, 3})}, {"classes", tensor(STRING_TENSOR, {3})}};
}

TEST(NameIndexTest, FindsEachNameAndNoOther) {
  std::vector<std::string> names = {"",     "a",       "ab",       "abc",
                                    "abcd", "abcdefg", "abcdefgh", "abcdefghi"};
  for (int i = 0; i < 500; ++i)
    names.push_back(numbered("a_long_common_prefix_", i) + "_and_suffix");
  const NameIndex index(names);
  EXPECT_EQ(index.size(), names.size());
  for (size_t i = 0; i < names.size(); ++i) EXPECT_EQ(index.find(names[i]), i) << names[i];
  for (const char* other : {"b", "abcde", "a_long_common_prefix_500_and_suffix", "A", "abcdefgi"}) {
    EXPECT_EQ(index.find(other), NameIndex::kNotFound) << other;
  }
}

TEST(NameIndexTest, IsEmptyByDefault) {
  EXPECT_EQ(NameIndex().find("a"), NameIndex::kNotFound);
  EXPECT_EQ(NameIndex(std::vector<std::string>()).find(""), NameIndex::kNotFound);
}

TEST(NameIndexTest, RefusesANameThatIsThereTwice) {
  EXPECT_THAT(outcome([] { NameIndex({"a", "b", "a"}); }), HasSubstr("invalid_argument"));
}

TEST(CallPlanTest, BindsInputsByTheirPlaceInTheSpec) {
  const CallPlan plan(image_inputs(), score_outputs(), CallRules::kCurrent);
  const NeuropodValueMap inputs = good_inputs();
  BoundInputs bound(plan.num_inputs());
  plan.bind(inputs, &bound);
  EXPECT_EQ(bound[0], &inputs.at("image"));
  EXPECT_EQ(bound[1], &inputs.at("label"));
  EXPECT_EQ(bound[2], nullptr);
}

TEST(CallPlanTest, PassesWhatFulfilsTheSpecs) {
  for (const CallRules rules : {CallRules::kCurrent, CallRules::kUpstream}) {
    const CallPlan plan(image_inputs(), score_outputs(), rules);
    EXPECT_EQ(call(plan, good_inputs(), good_outputs()), "passed");
    NeuropodValueMap more = good_inputs();
    more["scale"] = tensor(DOUBLE_TENSOR, {});
    EXPECT_EQ(call(plan, more, good_outputs()), "passed");
    const NeuropodValueMap none = {{"image", floats({0, 4, 0})},
                                   {"label", tensor(STRING_TENSOR, {0})}};
    EXPECT_EQ(
        call(plan, none, {{"scores", floats({0, 3})}, {"classes", tensor(STRING_TENSOR, {3})}}),
        "passed");
  }
}

TEST(CallPlanTest, TellsTheBytesOfTheNumbersItChecked) {
  const CallPlan plan(image_inputs(), score_outputs(), CallRules::kCurrent);
  NeuropodValueMap inputs = good_inputs();
  const auto bytes = [&] {
    BoundInputs bound(plan.num_inputs());
    SymbolBindings symbols(plan.num_symbols());
    plan.bind(inputs, &bound);
    return plan.check_inputs(bound, &symbols);
  };
  EXPECT_EQ(bytes(), 2u * 4 * 7 * sizeof(float));
  inputs["scale"] = tensor(DOUBLE_TENSOR, {});
  EXPECT_EQ(bytes(), 2u * 4 * 7 * sizeof(float) + sizeof(double));
  inputs["image"] = floats({2, 4, 0});
  EXPECT_EQ(bytes(), sizeof(double));
}

TEST(CallPlanTest, NamesEveryUnknownInputAndTheNearestKnownOne) {
  const CallPlan plan(image_inputs(), score_outputs(), CallRules::kUpstream);
  const std::string message =
      inputs_of(plan, {{"imgae", floats({1})}, {"Label", floats({1})}, {"zzz", floats({1})}});
  EXPECT_THAT(message,
              AllOf(HasSubstr("spec_mismatch"), HasSubstr("'Label', 'imgae', 'zzz'"),
                    HasSubstr("are not found in the input spec"),
                    HasSubstr("did you mean 'image' by 'imgae'?"),
                    HasSubstr("did you mean 'label' by 'Label'?"), Not(HasSubstr("by 'zzz'")),
                    HasSubstr("it has 'image', 'label', 'scale'")));
}

TEST(CallPlanTest, RefusesNullValues) {
  const CallPlan plan(image_inputs(), score_outputs(), CallRules::kUpstream);
  EXPECT_THAT(inputs_of(plan, {{"image", nullptr}}),
              AllOf(HasSubstr("'image'"), HasSubstr("null")));
  EXPECT_THAT(call(plan, good_inputs(), {{"scores", nullptr}}),
              AllOf(HasSubstr("'scores' in the output spec"), HasSubstr("null")));
}

TEST(CallPlanTest, SaysWhatTypeWasExpectedAndFound) {
  const CallPlan plan(image_inputs(), score_outputs(), CallRules::kCurrent);
  NeuropodValueMap inputs = good_inputs();
  inputs["image"] = tensor(DOUBLE_TENSOR, {2, 4, 7});
  EXPECT_THAT(
      inputs_of(plan, inputs),
      AllOf(HasSubstr("spec_mismatch: 'image' in the input spec is expected to be float32, but was "
                      "float64"),
            HasSubstr("expected float32 (batch, 4, any), found float64 (2, 4, 7)")));
}

TEST(CallPlanTest, SaysWhatRankWasExpectedAndFound) {
  const CallPlan plan({{"x", {-1, -1}, FLOAT_TENSOR}}, {}, CallRules::kUpstream);
  EXPECT_THAT(inputs_of(plan, {{"x", floats({5})}}),
              HasSubstr("in the input spec is expected to have 2 dimensions, but had 1"));
  EXPECT_THAT(inputs_of(plan, {{"x", floats({})}}), HasSubstr("found float32 ()"));
}

TEST(CallPlanTest, SaysWhichDimensionDiffers) {
  const CallPlan plan(image_inputs(), score_outputs(), CallRules::kCurrent);
  NeuropodValueMap inputs = good_inputs();
  inputs["image"] = floats({2, 5, 7});
  EXPECT_THAT(
      inputs_of(plan, inputs),
      HasSubstr("'image' in the input spec: dimension 1 is expected to have size 4, but had 5 "
                "(expected float32 (batch, 4, any), found float32 (2, 5, 7))"));
}

TEST(CallPlanTest, SaysWhichTensorBoundASymbol) {
  const CallPlan plan(image_inputs(), score_outputs(), CallRules::kCurrent);
  NeuropodValueMap inputs = good_inputs();
  inputs["label"] = tensor(STRING_TENSOR, {3});
  EXPECT_THAT(
      inputs_of(plan, inputs),
      HasSubstr("'label' in the input spec: dimension 0 is expected to have size 2, the value that "
                "'image' gave to the symbol 'batch', but had 3"));
}

TEST(CallPlanTest, ASymbolHoldsWithinOneTensor) {
  const CallPlan plan({{"square", {"n", "n"}, FLOAT_TENSOR}}, {}, CallRules::kUpstream);
  EXPECT_EQ(inputs_of(plan, {{"square", floats({3, 3})}}), "passed");
  EXPECT_THAT(inputs_of(plan, {{"square", floats({3, 4})}}), HasSubstr("dimension 1"));
}

TEST(CallPlanTest, ManySymbolsAndInputsWorkToo) {
  std::vector<TensorSpec> specs;
  NeuropodValueMap inputs;
  for (int i = 0; i < 100; ++i) {
    const std::string name = numbered("input", i);
    specs.emplace_back(name, std::vector<Dimension>{numbered("s", i / 2), i + 1}, FLOAT_TENSOR);
    inputs[name] = floats({i / 2, i + 1});
  }
  const CallPlan plan(specs, specs, CallRules::kCurrent);
  EXPECT_EQ(plan.num_symbols(), 50u);
  EXPECT_EQ(call(plan, inputs, inputs), "passed");
  inputs["input99"] = floats({50, 100});
  EXPECT_THAT(inputs_of(plan, inputs), HasSubstr("'input98' gave to the symbol 's49'"));
}

TEST(CallPlanTest, CurrentRulesWantEveryInputThatIsNotOptional) {
  const CallPlan plan(image_inputs(), score_outputs(), CallRules::kCurrent);
  EXPECT_THAT(
      inputs_of(plan, {{"image", floats({2, 4, 7})}}),
      HasSubstr("spec_mismatch: 'label' in the input spec is required but missing (expected string "
                "(batch,))"));
  const CallPlan with_default(image_inputs(), score_outputs(), CallRules::kCurrent, {"label"});
  EXPECT_EQ(inputs_of(with_default, {{"image", floats({2, 4, 7})}}), "passed");
}

TEST(CallPlanTest, UpstreamRulesLetInputsAndOutputsBeMissing) {
  const CallPlan plan(image_inputs(), score_outputs(), CallRules::kUpstream);
  EXPECT_EQ(call(plan, {}, {}), "passed");
}

TEST(CallPlanTest, CurrentRulesBindSymbolsAcrossTheCall) {
  const CallPlan plan(image_inputs(), score_outputs(), CallRules::kCurrent);
  NeuropodValueMap outputs = good_outputs();
  outputs["scores"] = floats({5, 3});
  EXPECT_THAT(
      call(plan, good_inputs(), outputs),
      HasSubstr(
          "'scores' in the output spec: dimension 0 is expected to have size 2, the value that "
          "'image' gave to the symbol 'batch', but had 5"));
}

TEST(CallPlanTest, UpstreamRulesWarnOnceOfSymbolsThatDifferAcrossTheCall) {
  const CallPlan plan(image_inputs(), score_outputs(), CallRules::kUpstream);
  NeuropodValueMap outputs = good_outputs();
  outputs["scores"] = floats({5, 3});
  testing::internal::CaptureStderr();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(call(plan, good_inputs(), outputs), "passed");
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr("the symbol 'batch' is 2 in input 'image' but 5 in output 'scores'"));
  EXPECT_EQ(log.find("'batch'"), log.rfind("'batch'"));
}

TEST(CallPlanTest, UpstreamRulesStillBindSymbolsAmongOutputs) {
  const CallPlan plan(image_inputs(), score_outputs(), CallRules::kUpstream);
  NeuropodValueMap outputs = good_outputs();
  outputs["classes"] = tensor(STRING_TENSOR, {9});
  EXPECT_THAT(call(plan, good_inputs(), outputs),
              HasSubstr("'scores' gave to the symbol 'classes'"));
}

TEST(CallPlanTest, ChecksOutputsAsInputs) {
  const CallPlan plan(image_inputs(), score_outputs(), CallRules::kCurrent);
  NeuropodValueMap outputs = good_outputs();
  outputs["extra"] = floats({1});
  EXPECT_THAT(call(plan, good_inputs(), outputs),
              HasSubstr("'extra' are not found in the output spec"));
  outputs = good_outputs();
  outputs["scores"] = floats({2});
  EXPECT_THAT(call(plan, good_inputs(), outputs),
              HasSubstr("in the output spec is expected to have 2 dimensions, but had 1"));
}

TEST(CallPlanTest, WantsAllOutputsOrThoseRequested) {
  const CallPlan current(image_inputs(), score_outputs(), CallRules::kCurrent);
  const CallPlan upstream(image_inputs(), score_outputs(), CallRules::kUpstream);
  const NeuropodValueMap scores = {{"scores", floats({2, 3})}};
  EXPECT_THAT(call(current, good_inputs(), scores),
              HasSubstr("'classes' in the output spec is required but missing"));
  EXPECT_EQ(call(upstream, good_inputs(), scores), "passed");
  for (const CallPlan* plan : {&current, &upstream}) {
    EXPECT_EQ(call(*plan, good_inputs(), scores, {"scores"}), "passed");
    EXPECT_THAT(call(*plan, good_inputs(), scores, {"scores", "classes"}),
                HasSubstr("'classes' in the output spec is required but missing"));
  }
}

TEST(CallPlanTest, NamesTheFirstRequestedOutputThatIsNone) {
  const CallPlan plan(image_inputs(), score_outputs(), CallRules::kUpstream);
  EXPECT_EQ(outcome([&] { plan.check_requested({"scores", "classes"}); }), "passed");
  EXPECT_EQ(
      outcome([&] { plan.check_requested({"scores", "score", "out_wrong"}); }),
      "not_found: there is no output 'score': did you mean 'scores'?; the model has 'scores', "
      "'classes'");
  EXPECT_EQ(outcome([&] { plan.check_requested({"out_wrong"}); }),
            "not_found: there is no output 'out_wrong'; the model has 'scores', 'classes'");
}

TEST(CallPlanTest, RefusesSpecsThatAreNone) {
  for (const int64_t dim : {0, -3, -100}) {
    EXPECT_THAT(outcome([&] { CallPlan({{"x", {dim}, FLOAT_TENSOR}}, {}, CallRules::kUpstream); }),
                AllOf(HasSubstr("invalid_argument: 'x' in the input spec has the dimension"),
                      HasSubstr(std::to_string(dim))));
  }
  EXPECT_THAT(outcome([] {
                CallPlan({}, {{"x", {}, FLOAT_TENSOR}, {"x", {}, FLOAT_TENSOR}},
                         CallRules::kCurrent);
              }),
              HasSubstr("'x'"));
}

TEST(CallPlanTest, ACallThatPassesAllocatesNothing) {
  const CallPlan plan(image_inputs(), score_outputs(), CallRules::kCurrent);
  const NeuropodValueMap inputs = good_inputs();
  const NeuropodValueMap outputs = good_outputs();
  const std::vector<std::string> requested;
  const size_t before = allocations;
  {
    BoundInputs bound(plan.num_inputs());
    SymbolBindings symbols(plan.num_symbols());
    plan.bind(inputs, &bound);
    plan.check_inputs(bound, &symbols);
    plan.check_outputs(outputs, requested, &symbols);
  }
  EXPECT_EQ(allocations - before, 0u);
}

TEST(ValidateTensorsTest, ChecksByUpstreamsRules) {
  const std::vector<TensorSpec> specs = {{"x", {"n", 2}, FLOAT_TENSOR}, {"y", {"n"}, FLOAT_TENSOR}};
  const auto validate = [&](const NeuropodValueMap& tensors) {
    return outcome([&] { validate_tensors_against_specs(tensors, specs, "input spec"); });
  };
  EXPECT_EQ(validate({}), "passed");
  EXPECT_EQ(validate({{"x", floats({3, 2})}, {"y", floats({3})}}), "passed");
  EXPECT_THAT(validate({{"x", floats({3, 2})}, {"y", floats({4})}}),
              HasSubstr("'x' gave to the symbol 'n'"));
  EXPECT_THAT(validate({{"x", floats({3})}}),
              HasSubstr("in the input spec is expected to have 2 dimensions, but had 1"));
  EXPECT_THAT(validate({{"x", floats({3, 1})}}), HasSubstr("dimension 1"));
  EXPECT_THAT(validate({{"x", tensor(INT64_TENSOR, {3, 2})}}), HasSubstr("expected to be float32"));
  EXPECT_THAT(validate({{"z", floats({3, 2})}}), HasSubstr("are not found in the input spec"));
}

TEST(ValidateTensorsTest, MinusTwoWithoutANameIsASymbolToo) {
  const std::vector<TensorSpec> specs = {{"x", {-2, -2}, FLOAT_TENSOR}};
  EXPECT_EQ(outcome([&] { validate_tensors_against_specs({{"x", floats({3, 3})}}, specs); }),
            "passed");
  EXPECT_NE(outcome([&] { validate_tensors_against_specs({{"x", floats({3, 4})}}, specs); }),
            "passed");
  EXPECT_NE(outcome([&] {
              validate_tensors_against_specs({{"x", floats({3})}}, {{"x", {-3}, FLOAT_TENSOR}});
            }),
            "passed");
}

}  // namespace
}  // namespace neuropod
