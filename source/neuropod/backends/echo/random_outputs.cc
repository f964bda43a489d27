#include "neuropod/backends/echo/random_outputs.hh"

#include <algorithm>
#include <complex>
#include <string_view>
#include <type_traits>
#include <vector>

namespace neuropod::echo {
namespace {

// splitmix64, by Sebastiano Vigna (public domain): small, fast, and any seed will do.
class Generator {
 public:
  explicit Generator(uint64_t seed) : state_(seed) {}

  uint64_t next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
  }
  uint64_t below(uint64_t end) { return next() % end; }
  double from_0_to_1() { return static_cast<double>(next() >> 11) * 0x1p-53; }

 private:
  uint64_t state_;
};

// A seed for what has this name (FNV-1a).
uint64_t seed_of(uint64_t seed, std::string_view name) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return Generator(seed ^ hash).next();
}

int64_t small_size(Generator* random) { return 1 + static_cast<int64_t>(random->below(8)); }

template <typename T>
T value(Generator* random) {
  if constexpr (std::is_same_v<T, bool>) {
    return random->below(2) == 1;
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(random->below(100));
  } else if constexpr (std::is_same_v<T, std::complex<float>> ||
                       std::is_same_v<T, std::complex<double>>) {
    using Part = typename T::value_type;
    const auto real = static_cast<Part>(random->from_0_to_1());
    return T(real, static_cast<Part>(random->from_0_to_1()));
  } else if constexpr (std::is_same_v<T, std::string>) {
    std::string text(3 + random->below(6), ' ');
    for (char& c : text) c = static_cast<char>('a' + random->below(26));
    return text;
  } else {
    return T(static_cast<float>(random->from_0_to_1()));
  }
}

template <typename T>
void fill(NeuropodTensor* tensor, Generator* random) {
  auto* typed = tensor->as_typed_tensor<T>();
  const size_t count = tensor->get_num_elements();
  if constexpr (std::is_same_v<T, std::string>) {
    for (size_t i = 0; i < count; ++i) typed->set_element(i, value<T>(random));
  } else {
    std::generate_n(typed->get_raw_data_ptr(), count, [random] { return value<T>(random); });
  }
}

}  // namespace

RandomOutputs::RandomOutputs(const ModelConfig& config, const BoundInputs& inputs, uint64_t seed,
                             uint64_t call_number)
    : seed_(Generator(seed + Generator(call_number).next()).next()) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i] == nullptr) continue;
    const std::vector<int64_t>& dims = (*inputs[i])->as_tensor()->get_dims();
    const std::vector<Dimension>& spec = config.inputs[i].dims;
    // Without checks a call may bring another rank.
    for (size_t dim = 0; dim < std::min(dims.size(), spec.size()); ++dim) {
      if (spec[dim].value == -2) sizes_.emplace(spec[dim].symbol, dims[dim]);
    }
  }
}

std::shared_ptr<NeuropodTensor> RandomOutputs::make(NeuropodTensorAllocator& allocator,
                                                    const TensorSpec& output) const {
  Generator random(seed_of(seed_, "output " + output.name));
  std::vector<int64_t> dims;
  for (const Dimension& dim : output.dims) {
    const auto known = sizes_.find(dim.symbol);
    if (dim.value == -1) {
      dims.push_back(small_size(&random));
    } else if (dim.value != -2) {
      dims.push_back(dim.value);
    } else if (known != sizes_.end()) {
      dims.push_back(known->second);
    } else {
      Generator of_symbol(seed_of(seed_, "symbol " + dim.symbol));
      dims.push_back(small_size(&of_symbol));
    }
  }
  std::shared_ptr<NeuropodTensor> tensor = allocator.allocate_tensor(dims, output.type);
  switch (output.type) {
#define NEUROPOD_ECHO_CASE(enumerator, number, name, cpp_type) \
  case enumerator:                                             \
    fill<cpp_type>(tensor.get(), &random);                     \
    break;
    NEUROPOD_FOR_EACH_DTYPE(NEUROPOD_ECHO_CASE)
#undef NEUROPOD_ECHO_CASE
  }
  return tensor;
}

}  // namespace neuropod::echo
