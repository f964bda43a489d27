#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <regex>
#include <string>

#include "neuropod/backends/metrics.hh"
#include "neuropod/neuropod.hh"
#include "neuropod/testing/package_on_disk.hh"

namespace neuropod {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kIdentity = R"({"outputs": {"y": {"op": "identity", "input": "x"}}})";

// The number at the end of the only line that begins with `start`.
double value_of(const std::string& text, const std::string& start) {
  const size_t at = text.find("\n" + start + " ");
  if (at == std::string::npos) {
    ADD_FAILURE() << "no line begins with " << start << " in\n" << text;
    return -1;
  }
  return std::stod(text.substr(at + start.size() + 2));
}

TEST(MetricsTextTest, AModelsSeriesLiveAsLongAsTheModel) {
  const PackageOnDisk package(one_input_config(R"("version": "the seventh",)"), kIdentity);
  auto model = std::make_unique<Neuropod>(package.path());
  auto copy = std::make_unique<Neuropod>(*model);
  model.reset();
  EXPECT_THAT(metrics_text(), HasSubstr("the seventh"));
  copy.reset();
  EXPECT_THAT(metrics_text(), Not(HasSubstr("the seventh")));
}

TEST(MetricsTextTest, TwoLoadsOfOnePackageAreTwoSeries) {
  const PackageOnDisk package(one_input_config(), kIdentity);
  const Neuropod one(package.path());
  const Neuropod other(package.path());
  one.infer({{"x", one.get_tensor_allocator()->ones<float>({1})}});
  const std::string text = metrics_text();
  const std::regex line(
      R"(neuropod_calls_total\{model="tested",platform="echo",load_id="\d+"\} (\d))");
  std::vector<std::string> counts;
  for (auto at = std::sregex_iterator(text.begin(), text.end(), line); at != std::sregex_iterator();
       ++at) {
    counts.push_back((*at)[1]);
  }
  EXPECT_THAT(counts, ::testing::ElementsAre("1", "0"));
}

TEST(MetricsTextTest, LabelsAreEscaped) {
  const PackageOnDisk package(one_input_config(R"("version": "a\\b\"c\nd",)"), kIdentity);
  const Neuropod model(package.path());
  EXPECT_THAT(metrics_text(), HasSubstr(R"(version="a\\b\"c\nd")"));
}

TEST(MetricsTextTest, LoadsAreCountedByHowTheyEnded) {
  const std::string before = metrics_text();
  EXPECT_THROW(Neuropod("/nowhere"), Error);
  EXPECT_THROW(Neuropod(PackageOnDisk(one_input_config(), "rubbish").path()), Error);
  EXPECT_THROW(Neuropod(PackageOnDisk("rubbish").path()), Error);
  EXPECT_THROW(Neuropod(PackageOnDisk(one_input_config("", "unheard_of")).path()), Error);
  const Neuropod good(PackageOnDisk(one_input_config(), kIdentity).path());
  const std::string after = metrics_text();
  const auto added = [&](const std::string& line) {
    return value_of(after, line) - value_of(before, line);
  };
  EXPECT_EQ(added("neuropod_model_loads_total"), 1);
  for (const char* code : {"not_found", "load_failed", "invalid_package", "backend_not_found"}) {
    EXPECT_EQ(added(std::string("neuropod_model_load_failures_total{code=\"") + code + "\"}"), 1)
        << code;
  }
  EXPECT_EQ(added("neuropod_model_load_failures_total{code=\"model_error\"}"), 0);
}

}  // namespace
}  // namespace neuropod
