#include "neuropod/multiprocess/worker_output.hh"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "neuropod/base/owned_descriptor.hh"

namespace neuropod::multiprocess {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

// A worker's stderr, and the log that its lines come to.
class WorkerOutputTest : public ::testing::Test {
 protected:
  WorkerOutputTest() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe2(ends.data(), O_NONBLOCK | O_CLOEXEC), 0);
    reading_.reset(ends[0]);
    writing_.reset(ends[1]);
    set_log_sink([this](const LogLine& line) {
      std::lock_guard lock(mutex_);
      logged_.emplace_back(line.message);
      levels_.push_back(line.level);
    });
  }
  ~WorkerOutputTest() override { set_log_sink(nullptr); }

  void print(std::string_view text) {
    ASSERT_EQ(::write(writing_.get(), text.data(), text.size()), ssize_t(text.size()));
    EXPECT_TRUE(output_.drain(reading_.get()));
  }
  // They are logged on another thread.
  std::vector<std::string> logged(size_t count) {
    for (int i = 0; i < 1000; ++i) {
      {
        std::lock_guard lock(mutex_);
        if (logged_.size() >= count) return logged_;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return logged_;
  }

  OwnedDescriptor reading_, writing_;
  WorkerOutput output_{"model 'm', worker 7"};
  std::mutex mutex_;
  std::vector<std::string> logged_;
  std::vector<LogLevel> levels_;
};

TEST_F(WorkerOutputTest, LinesAreLoggedWithTheNameHoweverTheyArrive) {
  print("one\ntw");
  print("o\nthr");
  output_.finish();
  EXPECT_THAT(logged(3), ElementsAre("[model 'm', worker 7] one", "[model 'm', worker 7] two",
                                     "[model 'm', worker 7] thr"));
  EXPECT_THAT(output_.last_lines(), HasSubstr("one\ntwo\nthr"));
}

TEST_F(WorkerOutputTest, TheWorkersOwnLogKeepsItsLevelAndItsLines) {
  print(
      "\x01W\x02"
      "file.cc:12\x02two\x03lines\n\x01?\x02"
      "nonsense\n");
  EXPECT_THAT(logged(2)[0], HasSubstr("two\nlines"));
  EXPECT_THAT(levels_, ElementsAre(LogLevel::kWarn, LogLevel::kInfo));
}

TEST_F(WorkerOutputTest, BytesThatAreNoTextBecomeSome) {
  print(std::string("\xff\xfe caf\xc3\xa9 \0 end\n", 15));
  const std::string line = logged(1)[0];
  EXPECT_THAT(line, HasSubstr("caf\xc3\xa9"));
  EXPECT_THAT(line, HasSubstr("end"));
  EXPECT_THAT(line, Not(HasSubstr("\xff")));
  EXPECT_THAT(output_.last_lines(), Not(HasSubstr("\xff")));
}

TEST_F(WorkerOutputTest, ALineWithoutEndIsCutAndTheLastLinesStayShort) {
  for (int i = 0; i < 40; ++i) print(std::string(16 << 10, 'x'));
  for (const std::string& line : logged(10)) EXPECT_LE(line.size(), (64u << 10) + 64);
  EXPECT_THAT(logged(10), SizeIs(10));
  EXPECT_LE(output_.last_lines().size(), 12u * 301 + 64);
}

TEST_F(WorkerOutputTest, AFloodIsReadInPartsSoThatOthersGetTheirTurn) {
  ASSERT_GE(::fcntl(writing_.get(), F_SETPIPE_SZ, 1 << 20), 0);
  const std::string flood(1 << 20, 'x');
  ASSERT_EQ(::write(writing_.get(), flood.data(), flood.size()), ssize_t(flood.size()));
  int parts = 0;
  char last = 0;
  do {
    EXPECT_TRUE(output_.drain(reading_.get()));
    ++parts;
  } while (parts < 100 && ::read(reading_.get(), &last, 1) == 1);
  EXPECT_GT(parts, 10);
  EXPECT_LT(parts, 30);
}

TEST_F(WorkerOutputTest, TheEndIsTold) {
  print("last");
  writing_.reset();
  EXPECT_FALSE(output_.drain(reading_.get()));
}

}  // namespace
}  // namespace neuropod::multiprocess
