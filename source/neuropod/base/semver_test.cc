#include "neuropod/base/semver.hh"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "neuropod/base/error.hh"

namespace neuropod {
namespace {

std::string why_invalid(const std::string& range) {
  try {
    check_version_range(range);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return error.message();
  }
  return "valid";
}

TEST(SemverTest, OrdersVersionsByNumberNotByText) {
  const std::vector<std::string> ascending = {"0.0.1",
                                              "0.9.0",
                                              "0.10.0",
                                              "1.0.0-0",
                                              "1.0.0-alpha",
                                              "1.0.0-alpha.1",
                                              "1.0.0-alpha.beta",
                                              "1.0.0-beta",
                                              "1.0.0-beta.2",
                                              "1.0.0-beta.11",
                                              "1.0.0-rc.1",
                                              "1.0.0",
                                              "1.0.1",
                                              "1.2",
                                              "1.10",
                                              "2",
                                              "10.0.0"};
  for (size_t i = 0; i < ascending.size(); ++i) {
    for (size_t j = 0; j < ascending.size(); ++j) {
      const int order = compare_versions(ascending[i], ascending[j]);
      EXPECT_EQ(order < 0, i < j) << ascending[i] << " and " << ascending[j];
      EXPECT_EQ(order == 0, i == j) << ascending[i] << " and " << ascending[j];
    }
  }
}

TEST(SemverTest, TakesVersionsAsFrameworksWriteThem) {
  EXPECT_EQ(compare_versions("2.13.0+cpu", "2.13.0"), 0);
  EXPECT_EQ(compare_versions("v2.13", "2.13.0"), 0);
  EXPECT_EQ(compare_versions(" 2.13.0\n", "2.13"), 0);
  EXPECT_EQ(compare_versions("2.4.0rc1", "2.4.0-rc.1"), 0);
  EXPECT_EQ(compare_versions("2.8.0a0+5228986c39.nv25.5", "2.8.0-a.0"), 0);
  EXPECT_EQ(compare_versions("2.5.0.dev20240901+cu121", "2.5.0-dev.20240901"), 0);
  EXPECT_EQ(compare_versions("1.2.3.post1", "1.2.3"), 0);
  EXPECT_LT(compare_versions("2.4.0rc2", "2.4.0rc11"), 0);
  EXPECT_LT(compare_versions("2.4.0rc1", "2.4.0"), 0);
}

TEST(SemverTest, RefusesWhatIsNoVersion) {
  for (const char* text :
       {"", "x", "1.x", "*", "1.2.3.4", "1.", "1..2", ".1", "one", "1.2.3-", "1.2.3+", "1.2.3-a..b",
        "1,2", "-1", "1.2.3 4", "99999999999999999999.0.0", "latest", "1.2.3foo"}) {
    EXPECT_THROW(compare_versions(text, "1.0.0"), Error) << text;
  }
  try {
    compare_versions("1.0.0", "1.2.3.4");
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("'1.2.3.4'"), std::string::npos) << error.message();
  }
}

struct RangeCase {
  const char* range;
  std::vector<const char*> inside;
  std::vector<const char*> outside;
};

// The rules of https://github.com/npm/node-semver, form by form.
TEST(SemverTest, MatchesRangesAsNpmDoes) {
  const std::vector<RangeCase> cases = {
      {"*", {"0.0.0", "1.2.3", "99.0.0"}, {"1.0.0-rc1"}},
      {"", {"0.0.0", "1.2.3"}, {"1.0.0-rc1"}},
      {"x", {"1.2.3"}, {}},
      {"1.2.3", {"1.2.3", "1.2.3+cpu", "v1.2.3"}, {"1.2.4", "1.2.2", "1.2.3-rc.1"}},
      {"=1.2.3", {"1.2.3"}, {"1.2.4"}},
      {"= 1.2.3", {"1.2.3"}, {"1.2.4"}},
      {"v1.2.3", {"1.2.3"}, {"1.2.4"}},
      {"3.8", {"3.8.0", "3.8.19"}, {"3.9.0", "3.7.9", "3.80.0"}},
      {"1.x", {"1.0.0", "1.99.0"}, {"2.0.0", "0.9.0", "2.0.0-a"}},
      {"1.2.*", {"1.2.0", "1.2.9"}, {"1.3.0", "1.1.9"}},
      {"1.*.3", {"1.0.0", "1.99.7"}, {"2.0.0"}},
      {"1", {"1.0.0", "1.9.9"}, {"2.0.0", "0.9.9"}},
      {"^2.0", {"2.0.0", "2.13.0"}, {"3.0.0", "1.9.9", "3.0.0-rc1"}},
      {"^1.2.3", {"1.2.3", "1.9.9"}, {"1.2.2", "2.0.0", "2.0.0-alpha"}},
      {"^0.2.3", {"0.2.3", "0.2.9"}, {"0.3.0", "0.2.2"}},
      {"^0.0.3", {"0.0.3"}, {"0.0.4", "0.0.2"}},
      {"^0.0", {"0.0.0", "0.0.9"}, {"0.1.0"}},
      {"^0.x", {"0.0.0", "0.9.9"}, {"1.0.0"}},
      {"^1.2.3-beta.2",
       {"1.2.3-beta.2", "1.2.3-beta.4", "1.2.3", "1.9.0"},
       {"1.2.4-beta.2", "1.2.3-beta.1"}},
      {"^ 1.2.3", {"1.2.3"}, {"2.0.0"}},
      {"~1.4", {"1.4.0", "1.4.9"}, {"1.5.0", "1.3.9"}},
      {"~1.2.3", {"1.2.3", "1.2.9"}, {"1.3.0", "1.2.2"}},
      {"~1", {"1.0.0", "1.9.0"}, {"2.0.0"}},
      {"~0.2.3", {"0.2.3", "0.2.9"}, {"0.3.0"}},
      {"~>1.2", {"1.2.0"}, {"1.3.0"}},
      {">=1.4.0 <2.0.0", {"1.4.0", "1.99.0"}, {"1.3.9", "2.0.0"}},
      {">= 1.4.0 < 2", {"1.4.0", "1.99.0"}, {"1.3.9", "2.0.0", "2.0.0-rc1"}},
      {">1.4", {"1.5.0", "2.0.0"}, {"1.4.0", "1.4.9"}},
      {">1", {"2.0.0"}, {"1.9.9"}},
      {">1.4.0", {"1.4.1"}, {"1.4.0"}},
      {"<=1.4", {"1.4.9", "0.1.0"}, {"1.5.0"}},
      {"<=1.4.0", {"1.4.0"}, {"1.4.1"}},
      {"<1.4", {"1.3.9"}, {"1.4.0", "1.4.0-rc1"}},
      {">=*", {"1.0.0"}, {}},
      {"<*", {}, {"0.0.0", "1.0.0"}},
      {"1.4.0 - 1.6.0", {"1.4.0", "1.5.3", "1.6.0"}, {"1.3.9", "1.6.1"}},
      {"1.4 - 1.6", {"1.4.0", "1.6.9"}, {"1.3.9", "1.7.0"}},
      {"2.0.0 - 3.0.0", {"2.21.0", "3.0.0"}, {"3.0.1", "1.9.0"}},
      {"1.2.3   -   2", {"1.2.3", "2.9.9"}, {"3.0.0", "1.2.2"}},
      {"* - 2.0.0", {"0.1.0", "2.0.0"}, {"2.0.1"}},
      {"1.2.3 || 2.x", {"1.2.3", "2.0.0", "2.5.0"}, {"1.2.4", "3.0.0"}},
      {"1.2.3||>=3", {"1.2.3", "4.0.0"}, {"2.0.0"}},
      {"1.2.3 ||", {"1.2.3", "4.0.0"}, {"4.0.0-a"}},
      {">=1.2.3-alpha.3", {"1.2.3-alpha.7", "1.2.3", "3.4.5"}, {"3.4.5-alpha.9", "1.2.3-alpha.2"}},
      {"2.4.0rc1", {"2.4.0rc1", "2.4.0-rc.1"}, {"2.4.0"}},
  };
  for (const RangeCase& c : cases) {
    for (const char* version : c.inside) {
      EXPECT_TRUE(version_satisfies(version, c.range)) << version << " in '" << c.range << "'";
    }
    for (const char* version : c.outside) {
      EXPECT_FALSE(version_satisfies(version, c.range)) << version << " in '" << c.range << "'";
    }
  }
}

TEST(SemverTest, SaysWhatIsWrongWithARange) {
  EXPECT_EQ(why_invalid("*"), "valid");
  for (const char* range :
       {"not a range", "1.2.3.4", ">", "^", "~", ">=", "1.2.3 -", "1.2.3 - ", "a || b", ">>1",
        "1.2.3 | 2", "^^1", "1.2.3,<2", "^latest", "!=1.0", "==1.0.0foo"}) {
    const std::string reason = why_invalid(range);
    EXPECT_NE(reason, "valid") << range;
    EXPECT_NE(reason.find(std::string("'") + range + "'"), std::string::npos) << reason;
  }
}

TEST(SemverTest, RefusesAVersionThatIsNoneWhateverTheRange) {
  EXPECT_THROW(version_satisfies("nonsense", "*"), Error);
  EXPECT_THROW(version_satisfies("1.0.0", "nonsense"), Error);
}

}  // namespace
}  // namespace neuropod
