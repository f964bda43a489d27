// A custom operator library: being opened is all it does. It appends its content's number to the
// file that NEUROPOD_TEST_OP_LOG names.
#include <cstdio>
#include <cstdlib>

#ifdef NEUROPOD_TEST_NEEDS
extern "C" const char* pretend_framework_version();
#endif

namespace {

[[gnu::constructor]] void opened() {
  const char* path = std::getenv("NEUROPOD_TEST_OP_LOG");
  if (path == nullptr) return;
  std::FILE* file = std::fopen(path, "a");
  if (file == nullptr) return;
  std::fputs(NEUROPOD_TEST_OP_CONTENT "\n", file);
#ifdef NEUROPOD_TEST_NEEDS
  std::fputs(pretend_framework_version(), file);
#endif
  std::fclose(file);
}

}  // namespace
