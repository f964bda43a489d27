// C06xx: requested outputs. C07xx: errors of models. C08xx: optional inputs, state.
#include "neuropod/testing/contract_suite/contract.hh"

namespace neuropod {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_F(Contract, C0601_AllOutputsComeIfNoneIsRequested) {
  if (!has("outputs")) return;
  const Neuropod model = load("outputs");
  const auto outputs = model.infer({{"x", floats(model, {1, 2})}});
  EXPECT_EQ(outputs->size(), carries("string") ? 3u : 2u);
  EXPECT_THAT(values(*outputs, "double"), ElementsAre(2, 4));
  EXPECT_THAT(values(*outputs, "negative"), ElementsAre(-1, -2));
  if (carries("string")) {
    EXPECT_THAT(texts(*outputs, "text"), ElementsAre("done"));
  }
}

TEST_F(Contract, C0602_OnlyRequestedOutputsCome) {
  if (!has("outputs")) return;
  const Neuropod model = load("outputs");
  const auto outputs = model.infer({{"x", floats(model, {1, 2})}}, {"negative"});
  EXPECT_EQ(outputs->size(), 1u);
  EXPECT_THAT(values(*outputs, "negative"), ElementsAre(-1, -2));
}

TEST_F(Contract, C0603_OrderAndRepetitionOfRequestsDoNotMatter) {
  if (!has("outputs")) return;
  const Neuropod model = load("outputs");
  const auto input = floats(model, {3});
  for (const std::vector<std::string>& requested : {std::vector<std::string>{"negative", "double"},
                                                    {"double", "negative"},
                                                    {"negative", "double", "negative"}}) {
    const auto outputs = model.infer({{"x", input}}, requested);
    EXPECT_EQ(outputs->size(), 2u);
    EXPECT_THAT(values(*outputs, "double"), ElementsAre(6));
    EXPECT_THAT(values(*outputs, "negative"), ElementsAre(-3));
  }
}

TEST_F(Contract, C0604_AnUnknownOutputIsNamed) {
  if (!has("outputs")) return;
  const Neuropod model = load("outputs");
  const auto input = floats(model, {3});
  const Error error = error_of([&] { model.infer({{"x", input}}, {"double", "out_wrong"}); });
  EXPECT_EQ(error.code(), ErrorCode::kNotFound);
  EXPECT_THAT(error.what(),
              AllOf(HasSubstr("out_wrong"), HasSubstr("negative"), HasSubstr(model.get_name())));
  EXPECT_EQ(model.infer({{"x", input}}, {"double"})->size(), 1u);
}

TEST_F(Contract, C0701_WhatTheModelRaisesIsInTheError) {
  if (!has("failing")) return;
  const Neuropod model = load("failing");
  const Error error = error_of([&] { model.infer({{"x", floats(model, {-1})}}); });
  EXPECT_EQ(error.code(), ErrorCode::kModelError);
  EXPECT_EQ(error.origin(), ErrorOrigin::kModel);
  EXPECT_FALSE(error.retryable());
  EXPECT_THAT(error.what(), AllOf(HasSubstr(contract::fixtures().failing_message()),
                                  HasSubstr(model.get_name()), HasSubstr("Neuropod Error: ")));
}

TEST_F(Contract, C0702_AModelThatRaisedWorksTheNextTime) {
  if (!has("failing")) return;
  const Neuropod model = load("failing");
  for (int i = 0; i < 3; ++i) {
    error_of([&] { model.infer({{"x", floats(model, {-1})}}); });
    EXPECT_THAT(values(*model.infer({{"x", floats(model, {1, 2})}}), "y"), ElementsAre(1, 2));
  }
}

TEST_F(Contract, C0703_ARefusedCallLeavesTheModelUsable) {
  if (!has("addition")) return;
  const Neuropod model = load("addition");
  const auto x = floats(model, {1, 2});
  error_of([&] { model.infer({{"x", x}, {"y", floats(model, {1})}}); });
  error_of([&] { model.infer({{"x", x}, {"z", x}}); });
  EXPECT_THAT(values(*model.infer({{"x", x}, {"y", x}}), "out"), ElementsAre(2, 4));
}

TEST_F(Contract, C0704_AFailedCallKeepsNothing) {
  if (!has("failing")) return;
  const Neuropod model = load("failing");
  const uint64_t before = model.get_tensor_allocator()->stats().live_bytes;
  std::weak_ptr<NeuropodTensor> input;
  {
    const auto tensor = floats(model, {-1});
    input = tensor;
    error_of([&] { model.infer({{"x", tensor}}); });
  }
  EXPECT_TRUE(input.expired());
  EXPECT_EQ(model.get_tensor_allocator()->stats().live_bytes, before);
}

TEST_F(Contract, C0801_AnOptionalInputMayBeLeftOut) {
  if (!has("optional")) return;
  const Neuropod model = load("optional");
  EXPECT_THAT(values(*model.infer({{"x", floats(model, {1, 2})}}), "y"), ElementsAre(1, 2));
}

TEST_F(Contract, C0802_AnOptionalInputIsUsedAndChecked) {
  if (!has("optional")) return;
  const Neuropod model = load("optional");
  const auto x = floats(model, {1, 2});
  EXPECT_THAT(values(*model.infer({{"x", x}, {"bias", floats(model, {10, 20})}}), "y"),
              ElementsAre(11, 22));
  EXPECT_EQ(error_of([&] { model.infer({{"x", x}, {"bias", floats(model, {1})}}); }).code(),
            ErrorCode::kSpecMismatch);
  EXPECT_EQ(error_of([&] { model.infer({{"bias", x}}); }).code(), ErrorCode::kSpecMismatch);
}

float add_to_state(const Neuropod& model, float value,
                   const std::shared_ptr<TypedNeuropodTensor<float>>& input) {
  input->as_scalar() = value;
  return model.infer({{"x", input}})->at("y")->as_tensor()->as_scalar<float>();
}

TEST_F(Contract, C0803_AStatefulModelKeepsItsState) {
  if (!has("stateful")) return;
  const Neuropod model = load("stateful");
  EXPECT_EQ(add_to_state(model, 1, floats(model, {0})), 1);
  EXPECT_EQ(add_to_state(model, 2, floats(model, {0})), 3);
  EXPECT_EQ(add_to_state(model, 4, floats(model, {0})), 7);
}

TEST_F(Contract, C0804_ResetStartsAfresh) {
  if (!has("stateful")) return;
  Neuropod model = load("stateful");
  EXPECT_EQ(add_to_state(model, 5, floats(model, {0})), 5);
  model.reset();
  EXPECT_EQ(add_to_state(model, 1, floats(model, {0})), 1);
  model.reset();
  model.reset();
  EXPECT_EQ(add_to_state(model, 2, floats(model, {0})), 2);
}

TEST_F(Contract, C0805_EachLoadedModelHasAStateOfItsOwn) {
  if (!has("stateful")) return;
  const Neuropod first = load("stateful");
  const Neuropod second = load("stateful");
  EXPECT_EQ(add_to_state(first, 5, floats(first, {0})), 5);
  EXPECT_EQ(add_to_state(second, 1, floats(second, {0})), 1);
}

TEST_F(Contract, C0806_OnlyAStatefulModelCanBeReset) {
  if (!has("identity")) return;
  Neuropod model = load("identity");
  const Error error = error_of([&] { model.reset(); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(error.what(), AllOf(HasSubstr(model.get_name()), HasSubstr("stateful")));
}

TEST_F(Contract, C0807_KeptOutputsDoNotChangeWithTheState) {
  if (!has("stateful")) return;
  const Neuropod model = load("stateful");
  const auto first = model.infer({{"x", floats(model, {1})}});
  model.infer({{"x", floats(model, {2})}});
  EXPECT_THAT(values(*first, "y"), ElementsAre(1));
}

}  // namespace
}  // namespace neuropod
