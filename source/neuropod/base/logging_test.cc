#include "neuropod/base/logging.hh"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace neuropod {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

class LoggingTest : public ::testing::Test {
 protected:
  void TearDown() override {
    set_log_level(LogLevel::kInfo);
    set_log_format(LogFormat::kText);
    set_log_sink(nullptr);
  }
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

nlohmann::json parse_only_line(const std::string& text) {
  EXPECT_EQ(count_lines(text), 1u) << text;
  return nlohmann::json::parse(text);
}

TEST_F(LoggingTest, AJsonLineHoldsAllThatATextLineDoes) {
  set_log_format(LogFormat::kJson);
  ::testing::internal::CaptureStderr();
  log(LogLevel::kWarn, "take \"care\"\nplease", "folder/place.cc", 12);
  const auto line = parse_only_line(::testing::internal::GetCapturedStderr());
  EXPECT_EQ(line["level"], "WARN");
  EXPECT_EQ(line["message"], "take \"care\"\nplease");
  EXPECT_EQ(line["file"], "folder/place.cc");
  EXPECT_EQ(line["line"], 12);
  EXPECT_EQ(line["process"], getpid());
  EXPECT_TRUE(line["thread"].is_number_unsigned());
  EXPECT_THAT(line["time"].get<std::string>(),
              MatchesRegex("[0-9]+-[0-9]+-[0-9]+T[0-9]+:[0-9]+:[0-9]+[.][0-9]+Z"));
}

TEST_F(LoggingTest, AJsonLineIsUtf8WhateverTheMessageHolds) {
  set_log_format(LogFormat::kJson);
  ::testing::internal::CaptureStderr();
  log(LogLevel::kInfo, "a path: \xff\xfe, and \xc3\xa4");
  const auto line = parse_only_line(::testing::internal::GetCapturedStderr());
  EXPECT_EQ(line["message"], "a path: \xef\xbf\xbd\xef\xbf\xbd, and \xc3\xa4");
}

TEST_F(LoggingTest, ASinkGetsTheLinesInsteadOfStderr) {
  std::vector<std::string> lines;
  const auto before = std::chrono::system_clock::now();
  set_log_sink([&](const LogLine& line) {
    EXPECT_GE(line.time, before);
    EXPECT_EQ(line.line, 7);
    lines.push_back(std::string(to_string(line.level)) + " " + std::string(line.message) + " " +
                    line.file);
  });
  ::testing::internal::CaptureStderr();
  log(LogLevel::kError, "lost", "a.cc", 7);
  log(LogLevel::kDebug, "below the level", "a.cc", 7);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  EXPECT_THAT(lines, ElementsAre("ERROR lost a.cc"));
  set_log_sink(nullptr);
  ::testing::internal::CaptureStderr();
  log(LogLevel::kError, "back");
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("back"));
  EXPECT_EQ(lines.size(), 1u);
}

TEST_F(LoggingTest, ALineWhoseSinkThrowsGoesToStderrAndTheExceptionIsSaidOnce) {
  set_log_sink([](const LogLine&) { throw std::runtime_error("the disk is full"); });
  ::testing::internal::CaptureStderr();
  log(LogLevel::kInfo, "first");
  log(LogLevel::kInfo, "second");
  const std::string text = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(count_lines(text), 3u) << text;
  EXPECT_THAT(text, AllOf(HasSubstr("first"), HasSubstr("second"),
                          HasSubstr("the log sink threw: the disk is full")));
}

TEST_F(LoggingTest, WhatASinkLogsGoesToStderr) {
  int calls = 0;
  set_log_sink([&](const LogLine&) {
    ++calls;
    log(LogLevel::kInfo, "from inside");
  });
  ::testing::internal::CaptureStderr();
  log(LogLevel::kInfo, "outer");
  EXPECT_EQ(calls, 1);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("from inside"));
}

TEST_F(LoggingTest, ASinkMayBeReplacedWhileThreadsLog) {
  std::atomic<int> lines{0};
  std::vector<std::thread> threads;
  set_log_sink([&](const LogLine&) { ++lines; });
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([] {
      for (int n = 0; n < 200; ++n) log(LogLevel::kInfo, "line");
    });
  }
  for (int i = 0; i < 50; ++i) set_log_sink([&](const LogLine&) { ++lines; });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(lines, 800);
}

// Waits for a child a while. False if it hangs; then it is ended.
bool ends_well(pid_t child) {
  int status = 0;
  for (int i = 0; i < 5000; ++i) {
    if (waitpid(child, &status, WNOHANG) == child) return status == 0;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  kill(child, SIGKILL);
  waitpid(child, &status, 0);
  return false;
}

TEST_F(LoggingTest, AForkedChildLogsThoughThreadsWereLogging) {
  set_log_sink([](const LogLine&) {});
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      while (!done) log(LogLevel::kError, "a line");
    });
  }
  bool well = true;
  for (int i = 0; i < 100 && well; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      log(LogLevel::kError, "the child's line");
      set_log_sink(nullptr);
      _exit(0);
    }
    well = ends_well(child);
  }
  done = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(well) << "a child hung";
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

TEST_F(LoggingDeathTest, TheCaseOfALevelDoesNotMatter) {
  EXPECT_EXIT(
      {
        setenv("NEUROPOD_LOG_LEVEL", "debug", 1);
        std::exit(log_enabled(LogLevel::kDebug) ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "^$");
}

TEST_F(LoggingDeathTest, TakesTheFormatFromTheEnvironment) {
  EXPECT_EXIT(
      {
        setenv("NEUROPOD_LOG_FORMAT", "json", 1);
        log(LogLevel::kInfo, "one line");
        std::exit(0);
      },
      ::testing::ExitedWithCode(0), "^\\{\"time\":[^\n]*\"message\":\"one line\"[^\n]*\\}\n$");
}

TEST_F(LoggingDeathTest, WarnsOnceOfAFormatThatIsNone) {
  EXPECT_EXIT(
      {
        setenv("NEUROPOD_LOG_FORMAT", "xml", 1);
        log_enabled(LogLevel::kInfo);
        log_enabled(LogLevel::kInfo);
        std::exit(0);
      },
      ::testing::ExitedWithCode(0), "^[^\n]*'xml', which is no format[^\n]*\n$");
}

}  // namespace
}  // namespace neuropod
