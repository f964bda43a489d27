#include "neuropod/base/logging.hh"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

namespace neuropod {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;

class LoggingTest : public ::testing::Test {
 protected:
  void TearDown() override { set_log_level(LogLevel::kInfo); }
};

size_t count_lines(const std::string& text) {
  return size_t(std::count(text.begin(), text.end(), '\n'));
}

TEST_F(LoggingTest, WritesToStderrAndNotToStdout) {
  set_log_level(LogLevel::kInfo);
  ::testing::internal::CaptureStderr();
  ::testing::internal::CaptureStdout();
  log(LogLevel::kInfo, "one line");
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "");
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("one line"));
}

TEST_F(LoggingTest, NamesLevelPlaceThreadAndProcess) {
  ::testing::internal::CaptureStderr();
  log(LogLevel::kWarn, "take care");
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              MatchesRegex("[0-9-]+ [0-9:]+[.][0-9]+: W logging_test.cc:[0-9]+\\] \\[thread "
                           "[0-9]+, process [0-9]+\\] take "
                           "care\n"));
}

TEST_F(LoggingTest, LinesBelowTheLevelAreDropped) {
  set_log_level(LogLevel::kWarn);
  EXPECT_FALSE(log_enabled(LogLevel::kInfo));
  EXPECT_TRUE(log_enabled(LogLevel::kError));
  ::testing::internal::CaptureStderr();
  log(LogLevel::kInfo, "unwanted");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

TEST_F(LoggingTest, BracesInAMessageAreNoFormat) {
  ::testing::internal::CaptureStderr();
  log(LogLevel::kInfo, "{} {0:d} %s");
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("{} {0:d} %s"));
}

TEST_F(LoggingTest, LinesOfManyThreadsDoNotMix) {
  ::testing::internal::CaptureStderr();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([] {
      for (int n = 0; n < 100; ++n) log(LogLevel::kInfo, std::string(200, 'x'));
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::string text = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(count_lines(text), 400u);
  size_t whole = 0;
  for (size_t at = text.find(std::string(200, 'x') + "\n"); at != std::string::npos;
       at = text.find(std::string(200, 'x') + "\n", at + 1)) {
    ++whole;
  }
  EXPECT_EQ(whole, 400u);
}

// The variable is read once per process: these run in processes of their own.
class LoggingDeathTest : public ::testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(LoggingDeathTest, TakesTheLevelFromTheEnvironment) {
  EXPECT_EXIT(
      {
        setenv("NEUROPOD_LOG_LEVEL", "DEBUG", 1);
        std::exit(log_enabled(LogLevel::kDebug) && !log_enabled(LogLevel::kTrace) ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "^$");
}

TEST_F(LoggingDeathTest, WarnsOnceOfALevelThatIsNone) {
  EXPECT_EXIT(
      {
        setenv("NEUROPOD_LOG_LEVEL", "LOUD", 1);
        log_enabled(LogLevel::kInfo);
        log_enabled(LogLevel::kInfo);
        std::exit(log_enabled(LogLevel::kDebug) ? 1 : 0);
      },
      ::testing::ExitedWithCode(0), "^[^\n]*'LOUD', which is no level[^\n]*\n$");
}

}  // namespace
}  // namespace neuropod
