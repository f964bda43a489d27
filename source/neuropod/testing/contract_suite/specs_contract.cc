// C02xx: calls against the problem API.
#include "neuropod/core/generic_tensor.hh"
#include "neuropod/testing/contract_suite/contract.hh"

namespace neuropod {
namespace {

using contract::Json;
using contract::set_spec;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_F(Contract, C0201_AWrongDtypeIsNamed) {
  if (!has("addition")) return;
  const Neuropod model = load("addition");
  const auto doubles = get_generic_tensor_allocator()->zeros<double>({2});
  const Error error =
      error_of([&] { model.infer({{"x", floats(model, {1, 2})}, {"y", doubles}}); });
  EXPECT_EQ(error.code(), ErrorCode::kSpecMismatch);
  EXPECT_THAT(error.what(), AllOf(HasSubstr(model.get_name()), HasSubstr("'y'"),
                                  HasSubstr("float32"), HasSubstr("float64")));
}

TEST_F(Contract, C0202_AWrongRankIsNamed) {
  if (!has("transpose")) return;
  const Neuropod model = load("transpose");
  const Error error = error_of([&] { model.infer({{"x", floats(model, {1, 2})}}); });
  EXPECT_EQ(error.code(), ErrorCode::kSpecMismatch);
  EXPECT_THAT(error.what(),
              AllOf(HasSubstr("'x'"),
                    HasSubstr("in the input spec is expected to have 2 dimensions, but had 1")));
}

TEST_F(Contract, C0203_AWrongDimensionIsNamed) {
  if (!has("identity")) return;
  const Neuropod model = load_variant(
      "identity", [](Json& config) { set_spec(config, "input_spec", "x", "float32", {3}); });
  const Error error = error_of([&] { model.infer({{"x", floats(model, {1, 2})}}); });
  EXPECT_EQ(error.code(), ErrorCode::kSpecMismatch);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("'x'"), HasSubstr("3"), HasSubstr("2")));
  EXPECT_EQ(model.infer({{"x", floats(model, {1, 2, 3})}})->size(), 1u);
}

TEST_F(Contract, C0204_ASymbolHasOneValueAndTheErrorSaysWhoBoundIt) {
  if (!has("addition")) return;
  const Neuropod model = load("addition");
  const Error error = error_of(
      [&] { model.infer({{"x", floats(model, {1, 2, 3})}, {"y", floats(model, {1, 2})}}); });
  EXPECT_EQ(error.code(), ErrorCode::kSpecMismatch);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("'x'"), HasSubstr("'y'"), HasSubstr("'n'")));
}

TEST_F(Contract, C0205_ASymbolBindsAcrossInputsAndOutputs) {
  if (!has("transpose")) return;
  const Neuropod model = load_variant("transpose", [](Json& config) {
    set_spec(config, "output_spec", "y", "float32", {"rows", "columns"});
  });
  const auto zeros = model.get_tensor_allocator();
  const Error error = error_of([&] { model.infer({{"x", zeros->zeros<float>({2, 3})}}); });
  EXPECT_EQ(error.code(), ErrorCode::kSpecMismatch);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("'x'"), HasSubstr("'y'")));
  EXPECT_EQ(model.infer({{"x", zeros->zeros<float>({2, 2})}})->size(), 1u);
}

TEST_F(Contract, C0206_AnUnknownInputIsNamed) {
  if (!has("identity")) return;
  const Neuropod model = load("identity");
  const auto input = floats(model, {1});
  const Error error = error_of([&] { model.infer({{"x", input}, {"ex", input}}); });
  EXPECT_EQ(error.code(), ErrorCode::kSpecMismatch);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("ex"), HasSubstr("are not found in the input spec")));
}

TEST_F(Contract, C0207_AMissingInputIsNamed) {
  if (!has("addition")) return;
  const Neuropod model = load("addition");
  const Error error = error_of([&] { model.infer({{"x", floats(model, {1})}}); });
  EXPECT_EQ(error.code(), ErrorCode::kSpecMismatch);
  EXPECT_THAT(error.what(), HasSubstr("'y'"));
  EXPECT_EQ(error_of([&] { model.infer({}); }).code(), ErrorCode::kSpecMismatch);
}

TEST_F(Contract, C0208_ANullInputIsNamed) {
  if (!has("identity")) return;
  const Neuropod model = load("identity");
  const Error error = error_of([&] { model.infer({{"x", nullptr}}); });
  EXPECT_EQ(error.code(), ErrorCode::kSpecMismatch);
  EXPECT_THAT(error.what(), HasSubstr("'x'"));
}

TEST_F(Contract, C0209_AnOutputThatBreaksItsSpecIsNamed) {
  if (!has("identity")) return;
  // A backend may see it when loading.
  const Error error = error_of([] {
    const Neuropod model = load_variant(
        "identity", [](Json& config) { set_spec(config, "output_spec", "y", "int32", {"n"}); });
    model.infer({{"x", floats(model, {1})}});
  });
  EXPECT_THAT(error.code(), AnyOf(ErrorCode::kSpecMismatch, ErrorCode::kInvalidPackage));
  EXPECT_THAT(error.what(), AllOf(HasSubstr("'y'"), HasSubstr("int32"), HasSubstr("float32")));
}

TEST_F(Contract, C0210_AnOutputThatTheModelLacksIsNamed) {
  if (!has("outputs")) return;
  const Error error = error_of([] {
    const Neuropod model = load_variant("outputs", [](Json& config) {
      config["output_spec"].push_back({{"name", "ghost"}, {"dtype", "float32"}, {"shape", {"n"}}});
    });
    model.infer({{"x", floats(model, {1})}});
  });
  EXPECT_THAT(error.what(), HasSubstr("ghost"));
}

TEST_F(Contract, C0211_ChecksCanBeSwitchedOffButForNames) {
  if (!has("identity")) return;
  RuntimeOptions unchecked = on_cpu();
  unchecked.disable_shape_and_type_checking = true;
  const Neuropod model = load_variant(
      "identity",
      [](Json& config) {
        set_spec(config, "input_spec", "x", "float32", {7});
        set_spec(config, "output_spec", "y", "float32", {7, 7});
      },
      unchecked);
  const auto input = floats(model, {1, 2});
  EXPECT_THAT(values(*model.infer({{"x", input}}), "y"), ElementsAre(1, 2));
  EXPECT_THAT(error_of([&] { model.infer({{"x", input}, {"ex", input}}); }).what(),
              HasSubstr("are not found in the input spec"));
}

TEST_F(Contract, C0212_PackagesWithoutFormatVersionKeepTheOldRules) {
  if (!has("transpose")) return;
  const Neuropod model = load_variant("transpose", [](Json& config) {
    config.erase("format_version");
    set_spec(config, "output_spec", "y", "float32", {"rows", "columns"});
  });
  // Symbols bind on each side by themselves: a conflict across the sides is a warning.
  const auto input = model.get_tensor_allocator()->zeros<float>({2, 3});
  EXPECT_EQ(model.infer({{"x", input}})->at("y")->as_tensor()->get_dims(),
            (std::vector<int64_t>{3, 2}));
}

}  // namespace
}  // namespace neuropod
