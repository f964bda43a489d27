#include "neuropod/multiprocess/worker_limits.hh"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "neuropod/base/temporary_folder.hh"
#include "neuropod/testing/error_of.hh"

namespace neuropod::multiprocess {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using OPE = RuntimeOptions::OPEOptions;

TEST(WorkerLimitsTest, RefusesWhatCannotBeAndNamesIt) {
  struct Case {
    const char* option;
    std::function<void(OPE&)> set;
    bool stateful = false;
  };
  const Case cases[] = {
      {"cpus", [](OPE& o) { o.cpus = {100'000}; }},
      {"cpu_quota", [](OPE& o) { o.cpu_quota = -1; }},
      {"threads", [](OPE& o) { o.threads = -1; }},
      {"nice", [](OPE& o) { o.nice = 20; }},
      {"memory_limit", [](OPE& o) { o.memory_limit = 4096; }},
      {"timeout", [](OPE& o) { o.timeout = milliseconds(0); }},
      {"startup_timeout", [](OPE& o) { o.startup_timeout = milliseconds(0); }},
      {"kill_grace", [](OPE& o) { o.kill_grace = milliseconds(-1); }},
      {"retries", [](OPE& o) { o.retries = -1; }},
      {"num_workers", [](OPE& o) { o.num_workers = 0; }},
      {"concurrency", [](OPE& o) { o.concurrency = 65; }},
      {"env", [](OPE& o) { o.env["a=b"] = ""; }},
      {"nice",
       [](OPE& o) {
         o.control_queue_name = "/s";
         o.nice = 1;
       }},
      {"num_workers",
       [](OPE& o) {
         o.control_queue_name = "/s";
         o.num_workers = 2;
       }},
      {"retries", [](OPE& o) { o.retries = 1; }, true},
      {"num_workers", [](OPE& o) { o.num_workers = 2; }, true},
      {"concurrency", [](OPE& o) { o.concurrency = 2; }, true},
  };
  for (const Case& one : cases) {
    RuntimeOptions options;
    one.set(options.ope_options);
    const Error error = error_of([&] { check_ope_options(options, one.stateful); });
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument) << one.option;
    EXPECT_THAT(error.message(), HasSubstr(std::string("ope_options.") + one.option));
  }
  RuntimeOptions contradiction;
  contradiction.visible_device = Device::CPU;
  contradiction.ope_options.gpu = "1";
  EXPECT_THAT(error_of([&] { check_ope_options(contradiction, false); }).message(),
              AllOf(HasSubstr("gpu"), HasSubstr("visible_device")));
  check_ope_options(RuntimeOptions{}, true);
}

TEST(WorkerLimitsTest, TheWorkerSeesTheGpusThatItsModelMayUse) {
  const auto seen = [](int device, const std::string& gpu, const char* here) {
    RuntimeOptions options;
    options.visible_device = device;
    options.ope_options.gpu = gpu;
    return worker_visible_gpus(options, here);
  };
  EXPECT_EQ(seen(Device::CPU, "", "0,1"), "");
  EXPECT_EQ(seen(0, "", nullptr), "0");
  EXPECT_EQ(seen(3, "", nullptr), "3");
  EXPECT_EQ(seen(0, "", ""), "");
  EXPECT_EQ(seen(1, "", "2,3"), "3");
  EXPECT_EQ(seen(0, "", "GPU-ab, GPU-cd"), "GPU-ab");
  EXPECT_EQ(seen(0, "1", "4,5"), "5");
  EXPECT_EQ(seen(0, "GPU-xy,0", "4,5"), "GPU-xy,4");
  EXPECT_THAT(error_of([&] { seen(7, "", "2,3"); }).message(), HasSubstr("GPU 7"));
}

TEST(WorkerLimitsTest, WithoutACgroupAQuotaIsRefused) {
  const TemporaryFolder empty;
  std::string why;
  EXPECT_EQ(WorkerCgroup::create(0, 1.5, &why, empty.path()), nullptr);
  EXPECT_THAT(why, HasSubstr(empty.path()));
}

TEST(WorkerLimitsTest, AGpuIsANumberOrAName) {
  RuntimeOptions options;
  for (const char* gpu : {"", "0", "1, 3", "GPU-2f6c", "MIG-1,GPU-2"}) {
    options.ope_options.gpu = gpu;
    check_ope_options(options, false);
  }
  for (const char* gpu : {",", " ", "-1", "first", "0,-1"}) {
    options.ope_options.gpu = gpu;
    const Error error = error_of([&] { check_ope_options(options, false); });
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument) << gpu;
    EXPECT_THAT(error.message(), HasSubstr(std::string("but is '") + gpu + "'"));
  }
}

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string text;
  std::getline(file, text);
  return text;
}

std::string own_v2_group() {
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("0::/", 0) == 0) return line.substr(4);
  }
  return "";
}

// The files of the kernel's second version, which few machines of ours let us write.
TEST(WorkerLimitsTest, InVersionTwoTheGroupHasItsLimitsAndTakesTheProcess) {
  namespace fs = std::filesystem;
  const TemporaryFolder root;
  const fs::path parent = fs::path(root.path()) / own_v2_group();
  fs::create_directories(parent);
  std::ofstream(parent / "cgroup.controllers") << "cpu memory";
  std::ofstream(parent / "cgroup.subtree_control") << "cpu";
  std::string why;
  EXPECT_EQ(WorkerCgroup::create(1 << 30, 1.5, &why, root.path()), nullptr);
  EXPECT_THAT(why, HasSubstr("doesn't hand the controllers down"));

  std::ofstream(parent / "cgroup.subtree_control") << "cpu memory";
  const auto group = WorkerCgroup::create(1 << 30, 1.5, &why, root.path());
  ASSERT_NE(group, nullptr) << why;
  fs::path folder;
  for (const auto& entry : fs::directory_iterator(parent)) {
    if (entry.is_directory()) folder = entry.path();
  }
  EXPECT_THAT(folder.filename().string(), HasSubstr("neuropod-" + std::to_string(::getpid())));
  EXPECT_EQ(text_of(folder / "memory.max"), "1073741824");
  EXPECT_EQ(text_of(folder / "memory.swap.max"), "0");
  EXPECT_EQ(text_of(folder / "cpu.max"), "150000 100000");
  std::ofstream(folder / "cgroup.procs").flush();
  EXPECT_TRUE(group->add(12345));
  EXPECT_EQ(text_of(folder / "cgroup.procs"), "12345");
  EXPECT_FALSE(group->killed_for_memory());
  std::ofstream(folder / "memory.events") << "low 0\nmax 7\noom 1\noom_kill 1\n";
  EXPECT_TRUE(group->killed_for_memory());
}

TEST(WorkerLimitsTest, ACgroupThatCanBeMadeHereGoesWithItsObject) {
  const auto count = [] {
    size_t groups = 0;
    std::error_code ignored;
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator("/sys/fs/cgroup", ignored)) {
      const std::string ours = "neuropod-" + std::to_string(::getpid());
      groups += entry.is_directory() && entry.path().filename().string().rfind(ours, 0) == 0;
    }
    return groups;
  };
  std::string why;
  const size_t before = count();
  {
    const auto group = WorkerCgroup::create(uint64_t{1} << 30, 0, &why);
    // Where cgroups aren't ours to write, the refusal says why.
    EXPECT_EQ(count() > before, group != nullptr);
    EXPECT_EQ(why.empty(), group != nullptr) << why;
    EXPECT_FALSE(group != nullptr && group->killed_for_memory());
  }
  EXPECT_EQ(count(), before);
}

}  // namespace
}  // namespace neuropod::multiprocess
