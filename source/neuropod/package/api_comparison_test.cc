#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "neuropod/base/error.hh"
#include "neuropod/core/generic_tensor.hh"
#include "neuropod/package/call_plan.hh"
#include "neuropod/package/problem_api.hh"

namespace neuropod {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using Dims = std::vector<Dimension>;
constexpr int64_t kAny = -1;

TensorSpec floats(const std::string& name, Dims dims, bool optional = false) {
  return {name, std::move(dims), FLOAT_TENSOR, optional};
}

// "BREAKING text" or "text", in order.
std::vector<std::string> differences(const ProblemApi& old_api, const ProblemApi& new_api) {
  std::vector<std::string> texts;
  for (const ApiDifference& difference : compare_problem_apis(old_api, new_api)) {
    EXPECT_THAT(difference.text, HasSubstr("'" + difference.tensor + "'"));
    texts.push_back((difference.breaking ? "BREAKING " : "") + difference.text);
  }
  return texts;
}

// Of one input `x`, and of one output `y`.
std::vector<std::string> of_input(Dims before, Dims after) {
  return differences({{floats("x", std::move(before))}, {}}, {{floats("x", std::move(after))}, {}});
}
std::vector<std::string> of_output(Dims before, Dims after) {
  return differences({{}, {floats("y", std::move(before))}}, {{}, {floats("y", std::move(after))}});
}

const ProblemApi& detection() {
  static const ProblemApi api = {
      {{"image", {1200, 1920, 3}, UINT8_TENSOR}},
      {floats("boxes", {"num_detections", 4}),
       {"supported_object_classes", {"num_classes"}, STRING_TENSOR},
       floats("object_class_probability", {"num_detections", "num_classes"})}};
  return api;
}

TEST(ApiComparisonTest, AnApiDoesNotDifferFromItself) {
  EXPECT_THAT(differences(detection(), detection()), IsEmpty());
}

TEST(ApiComparisonTest, NamesTensorsThatAreMissingOrNew) {
  EXPECT_THAT(
      differences({{floats("x", {"n"})}, {floats("y", {2, 3})}},
                  {{floats("a", {1}), floats("b", {}, true)}, {floats("z", {kAny})}}),
      ElementsAre("BREAKING input 'x' is missing: float32 (n,)",
                  "BREAKING input 'a' is new and required: float32 (1,); \"optional\": true "
                  "would let programs leave it out",
                  "input 'b' is new and optional: float32 ()",
                  "BREAKING output 'y' is missing: float32 (2, 3)",
                  "output 'z' is new: float32 (any,)"));
}

TEST(ApiComparisonTest, NamesAnotherDtypeOrRank) {
  EXPECT_THAT(
      differences({{{"x", {"n"}, UINT8_TENSOR}}, {floats("y", {"n"})}},
                  {{{"x", {"n"}, INT8_TENSOR}}, {floats("y", {"n", 1})}}),
      ElementsAre("BREAKING input 'x' is int8 instead of uint8",
                  "BREAKING output 'y' has 2 dimensions instead of 1: float32 (n, 1) instead "
                  "of float32 (n,)"));
}

TEST(ApiComparisonTest, AnInputMayBecomeOptionalOnly) {
  const ProblemApi required = {{floats("x", {})}, {}};
  const ProblemApi optional = {{floats("x", {}, true)}, {}};
  EXPECT_THAT(differences(required, optional),
              ElementsAre("input 'x' is optional instead of required"));
  EXPECT_THAT(differences(optional, required),
              ElementsAre("BREAKING input 'x' is required instead of optional"));
}

TEST(ApiComparisonTest, AnInputMayBecomeWiderOnly) {
  EXPECT_THAT(of_input({3}, {kAny}),
              ElementsAre("input 'x' dimension 0 takes any size instead of 3"));
  EXPECT_THAT(of_input({"n"}, {kAny}),
              ElementsAre("input 'x' dimension 0 takes any size instead of 'n'"));
  EXPECT_THAT(of_input({3}, {"n"}),
              ElementsAre("input 'x' dimension 0 takes any size ('n') instead of 3"));
  EXPECT_THAT(of_input({kAny}, {3}),
              ElementsAre("BREAKING input 'x' dimension 0 takes 3 only instead of any size"));
  EXPECT_THAT(of_input({"n"}, {3}),
              ElementsAre("BREAKING input 'x' dimension 0 takes 3 only instead of 'n'"));
  EXPECT_THAT(of_input({3}, {4}),
              ElementsAre("BREAKING input 'x' dimension 0 takes 4 only instead of 3"));
}

TEST(ApiComparisonTest, ASymbolOfInputsMustHaveBeenEqualBefore) {
  EXPECT_THAT(
      of_input({"n", "m"}, {"k", "k"}),
      ElementsAre("input 'x' dimension 0 is 'k' instead of 'n'",
                  "BREAKING input 'x' dimension 1 must equal dimension 0 of input 'x' (both "
                  "are 'k'), instead of being free of it"));
  EXPECT_THAT(of_input({kAny, kAny}, {"k", "k"}), testing::SizeIs(2));
  EXPECT_THAT(of_input({3, 3}, {"k", "k"}),
              ElementsAre("input 'x' dimension 0 takes any size ('k') instead of 3",
                          "input 'x' dimension 1 takes any size ('k') instead of 3"));
  EXPECT_THAT(of_input({3, "n"}, {"k", "k"}).back(), HasSubstr("BREAKING"));
}

TEST(ApiComparisonTest, InputsNeedNotBeEqualAnyMore) {
  EXPECT_THAT(of_input({"n", "n"}, {"n", "m"}),
              ElementsAre("input 'x' dimension 1 is 'm' instead of 'n'"));
}

TEST(ApiComparisonTest, AnOutputMayBecomeNarrowerOnly) {
  EXPECT_THAT(of_output({kAny}, {4}),
              ElementsAre("output 'y' dimension 0 is 4 instead of any size"));
  EXPECT_THAT(of_output({"n"}, {100}), ElementsAre("output 'y' dimension 0 is 100 instead of 'n'"));
  EXPECT_THAT(of_output({4}, {kAny}),
              ElementsAre("BREAKING output 'y' dimension 0 is any size instead of 4"));
  EXPECT_THAT(of_output({4}, {"n"}),
              ElementsAre("BREAKING output 'y' dimension 0 is 'n' instead of 4"));
}

TEST(ApiComparisonTest, OutputsKeepTheEqualitiesTheyHad) {
  EXPECT_THAT(of_output({"n", "n"}, {"k", "k"}),
              ElementsAre("output 'y' dimension 0 is 'k' instead of 'n'"));
  EXPECT_THAT(of_output({"n", "n"}, {7, 7}), testing::Each(testing::Not(HasSubstr("BREAKING"))));
  EXPECT_THAT(
      of_output({"n", "n"}, {"n", kAny}),
      ElementsAre("BREAKING output 'y' dimension 1 is any size instead of equal to dimension 0 "
                  "of output 'y' ('n')"));
  const ProblemApi same = {{floats("x", {"n"})}, {floats("y", {"n"})}};
  EXPECT_THAT(
      differences(same, {{floats("x", {"n"})}, {floats("y", {"m"})}}),
      ElementsAre("BREAKING output 'y' dimension 0 is 'm' instead of equal to dimension 0 of "
                  "input 'x' ('n')"));
}

TEST(ApiComparisonTest, TheCallersInputsFixWhatTheNewOutputsAreTiedTo) {
  // The old API's calls give 3, and the new output is as long as the input.
  const ProblemApi fixed = {{floats("x", {3})}, {floats("y", {3})}};
  const ProblemApi tied = {{floats("x", {"n"})}, {floats("y", {"n"})}};
  EXPECT_THAT(differences(fixed, tied),
              ElementsAre("input 'x' dimension 0 takes any size ('n') instead of 3",
                          "output 'y' dimension 0 is 'n' instead of 3"));
}

TEST(ApiComparisonTest, AnOptionalInputTiesOutputsOnlyWhereItIsGiven) {
  const ProblemApi tied = {{floats("x", {"n"}, true)}, {floats("y", {"n"}), floats("z", {"n"})}};
  // Equal to the input each, but with the input left out no longer to each other.
  const ProblemApi loose = {{floats("x", {"n"}, true)}, {floats("y", {"n"}), floats("z", {"m"})}};
  EXPECT_THAT(differences(tied, tied), IsEmpty());
  EXPECT_THAT(differences(tied, loose).back(), HasSubstr("BREAKING output 'z'"));
}

TEST(ApiComparisonTest, ARenamedSymbolIsToldOnce) {
  EXPECT_THAT(differences({{floats("x", {"n", "n"}), floats("z", {"n"})}, {floats("y", {"n"})}},
                          {{floats("x", {"b", "b"}), floats("z", {"b"})}, {floats("y", {"b"})}}),
              ElementsAre("input 'x' dimension 0 is 'b' instead of 'n'"));
}

TEST(ApiComparisonTest, RequireFulfilledListsWhatBreaks) {
  EXPECT_NO_THROW(require_fulfilled(detection(), detection(), "package 'p'"));
  ProblemApi less = detection();
  less.outputs.pop_back();
  try {
    require_fulfilled(detection(), less, "package 'p'");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_EQ(error.message(),
              "package 'p' doesn't fulfil the problem API: output 'object_class_probability' is "
              "missing: float32 (num_detections, num_classes)");
  }
}

// ------------------------------------------------------------------------------------------------
// The comparison against the checks themselves: for random pairs of small APIs every call with
// sizes of kSizes is tried. Two sizes are enough to show an inequality, and both fixed sizes are
// among them.

const std::vector<int64_t> kSizes = {2, 3, 5};

class RandomApis {
 public:
  explicit RandomApis(unsigned seed) : random_(seed) {}

  ProblemApi any() {
    ProblemApi api;
    api.inputs.push_back(floats("x", dims(1 + below(2)), below(4) == 0));
    if (below(2) == 0) api.inputs.push_back(floats("z", dims(1), below(2) == 0));
    api.outputs.push_back(floats("y", dims(1 + below(2))));
    if (below(2) == 0) api.outputs.push_back(floats("w", dims(1)));
    return api;
  }

  // `api` with some dimensions, and whether inputs are optional, drawn again.
  ProblemApi changed(const ProblemApi& api) {
    ProblemApi result;
    for (const TensorSpec& input : api.inputs) {
      const bool optional = below(5) == 0 ? !input.optional : input.optional;
      result.inputs.push_back(floats(input.name, changed(input.dims), optional));
    }
    for (const TensorSpec& output : api.outputs) {
      result.outputs.push_back(floats(output.name, changed(output.dims)));
    }
    return result;
  }

 private:
  unsigned below(unsigned end) { return static_cast<unsigned>(random_() % end); }

  Dimension dimension() {
    const std::vector<Dimension> choices = {2, 3, kAny, "a", "a", "b"};
    return choices[below(static_cast<unsigned>(choices.size()))];
  }
  Dims dims(unsigned rank) {
    Dims result;
    for (unsigned i = 0; i < rank; ++i) result.push_back(dimension());
    return result;
  }
  Dims changed(const Dims& dims) {
    Dims result;
    for (const Dimension& dim : dims) result.push_back(below(3) == 0 ? dimension() : dim);
    return result;
  }

  std::mt19937 random_;
};

std::shared_ptr<NeuropodValue> tensor_of(const std::vector<int64_t>& dims) {
  static auto* const tensors = new std::map<std::vector<int64_t>, std::shared_ptr<NeuropodValue>>();
  std::shared_ptr<NeuropodValue>& tensor = (*tensors)[dims];
  if (tensor == nullptr) tensor = get_generic_tensor_allocator()->allocate_tensor<float>(dims);
  return tensor;
}

// Calls `use` with each way to give `specs` sizes, from spec `index` on; optional ones left out
// too.
template <typename Use>
void for_each_assignment(const std::vector<TensorSpec>& specs, size_t index,
                         NeuropodValueMap* values, const Use& use) {
  if (index == specs.size()) {
    use();
    return;
  }
  const TensorSpec& spec = specs[index];
  size_t combinations = 1;
  for (size_t i = 0; i < spec.dims.size(); ++i) combinations *= kSizes.size();
  for (size_t number = 0; number < combinations; ++number) {
    std::vector<int64_t> dims;
    for (size_t i = 0, rest = number; i < spec.dims.size(); ++i, rest /= kSizes.size()) {
      dims.push_back(kSizes[rest % kSizes.size()]);
    }
    (*values)[spec.name] = tensor_of(dims);
    for_each_assignment(specs, index + 1, values, use);
  }
  values->erase(spec.name);
  if (spec.optional) for_each_assignment(specs, index + 1, values, use);
}

// Whether the checks let a call pass; with `outputs` null, as far as its inputs go.
bool passes(const CallPlan& plan, const NeuropodValueMap& inputs, const NeuropodValueMap* outputs) {
  try {
    BoundInputs bound(plan.num_inputs());
    SymbolBindings symbols(plan.num_symbols());
    plan.bind(inputs, &bound);
    plan.check_inputs(bound, &symbols);
    if (outputs != nullptr) plan.check_outputs(*outputs, {}, &symbols);
    return true;
  } catch (const Error&) {
    return false;
  }
}

bool is_replaceable(const ProblemApi& old_api, const ProblemApi& new_api) {
  const CallPlan old_plan(old_api.inputs, old_api.outputs, CallRules::kCurrent);
  const CallPlan new_plan(new_api.inputs, new_api.outputs, CallRules::kCurrent);
  bool replaceable = true;
  NeuropodValueMap inputs;
  NeuropodValueMap outputs;
  for_each_assignment(old_api.inputs, 0, &inputs, [&] {
    if (!replaceable || !passes(old_plan, inputs, nullptr)) return;
    replaceable = passes(new_plan, inputs, nullptr);
    for_each_assignment(old_api.outputs, 0, &outputs, [&] {
      if (!replaceable || !passes(new_plan, inputs, &outputs)) return;
      replaceable = passes(old_plan, inputs, &outputs);
    });
  });
  return replaceable;
}

bool is_compatible(const ProblemApi& old_api, const ProblemApi& new_api) {
  for (const ApiDifference& difference : compare_problem_apis(old_api, new_api)) {
    if (difference.breaking) return false;
  }
  return true;
}

TEST(ApiComparisonTest, AgreesWithTheChecksOfCallsOnRandomApis) {
  RandomApis random(20261130);
  int compatible = 0;
  constexpr int kPairs = 1500;
  for (int i = 0; i < kPairs; ++i) {
    const ProblemApi old_api = random.any();
    const ProblemApi new_api = random.changed(old_api);
    compatible += is_compatible(old_api, new_api);
    ASSERT_EQ(is_compatible(old_api, new_api), is_replaceable(old_api, new_api))
        << "old:\n"
        << problem_api_text(old_api) << "new:\n"
        << problem_api_text(new_api);
  }
  // The pairs are of both kinds.
  EXPECT_GT(compatible, kPairs / 20);
  EXPECT_LT(compatible, kPairs - kPairs / 20);
}

TEST(ApiComparisonTest, BeingCompatibleIsTransitiveOnRandomApis) {
  RandomApis random(7);
  int chains = 0;
  for (int i = 0; i < 20000; ++i) {
    const ProblemApi first = random.any();
    const ProblemApi second = random.changed(first);
    const ProblemApi third = random.changed(second);
    if (!is_compatible(first, second) || !is_compatible(second, third)) continue;
    ++chains;
    ASSERT_TRUE(is_compatible(first, third))
        << problem_api_text(first) << problem_api_text(second) << problem_api_text(third);
  }
  EXPECT_GT(chains, 100);
}

}  // namespace
}  // namespace neuropod
