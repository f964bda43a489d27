// Runs a fuzz target without libFuzzer: mutations of well-formed bodies and messages, from a fixed
// seed. Usage: PROGRAM [RUNS]
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "neuropod/multiprocess/channel/call_message.hh"
#include "neuropod/multiprocess/serialization/ipc_serialization.hh"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace neuropod::multiprocess {
namespace {

std::vector<std::string> seeds() {
  std::vector<std::string> all;
  BodyWriter writer;
  writer.begin_request({0, 1});
  writer.add(0, {}, FLOAT_TENSOR, {16}, Place::kInputArena, 0, 64, 0);
  writer.add(1, {}, INT64_TENSOR, {2, 2}, Place::kOutputArena, 4096, 32, 4096);
  writer.add(2, {}, STRING_TENSOR, {2}, Place::kInputArena, 128, 40, 0);
  all.emplace_back(writer.finish());
  writer.begin_reply();
  writer.add(0, {}, FLOAT_TENSOR, {16}, Place::kInputArena, 0, 64, 0);
  const std::vector<std::string_view> strings{"one", "", "three"};
  write_string_content(strings,
                       writer.add_inline(1, {}, STRING_TENSOR, {3}, string_content_bytes(strings)));
  writer.add_inline(kNamed, "named", UINT8_TENSOR, {5}, 5);
  writer.add_kept(0, 9);
  all.emplace_back(writer.finish());
  // The host's target begins with two words of its own.
  all.push_back(std::string(16, '\1') + all.back());
  writer.write_error(ErrorCode::kModelError, "it raised");
  all.emplace_back(writer.finish());
  LoadRequest request;
  request.path = "/p";
  all.push_back(serialize(request));
  all.push_back(std::string(16, '\1') + serialize(LoadReply{"1", 2, {"x"}}));
  return all;
}

}  // namespace
}  // namespace neuropod::multiprocess

int main(int argc, char** argv) {
  const long runs = argc > 1 ? std::atol(argv[1]) : 200'000;
  const std::vector<std::string> seeds = neuropod::multiprocess::seeds();
  std::mt19937 random(2026);
  for (long run = 0; run < runs; ++run) {
    std::string input = seeds[random() % seeds.size()];
    for (unsigned i = 0; i < random() % 6; ++i) {
      const size_t at = random() % input.size();
      switch (random() % 4) {
        case 0:
          input[at] = static_cast<char>(random());
          break;
        case 1: {
          const uint64_t word = random() % 2 == 0 ? random() % 256 : ~uint64_t{0} >> random() % 64;
          std::memcpy(input.data() + at / 8 * 8, &word,
                      std::min<size_t>(8, input.size() - at / 8 * 8));
          break;
        }
        case 2:
          input.resize(at + 1);
          break;
        default:
          input.insert(at, input.substr(at, random() % 64));
      }
    }
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size());
  }
  std::printf("%ld runs\n", runs);
  return 0;
}
