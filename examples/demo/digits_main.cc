// Runs a packaged digit model over labelled scans and prints how many it reads right.
//
//     neuropod_digits digits.neuropod images.npy labels.npy
//
// images.npy: float32 (n, 8, 8). labels.npy: int64 (n,). The model's problem API is input `image`,
// float32 (n, 8, 8), and output `digit`, int64 (n,). Nothing here knows which framework made it.

#include "neuropod/neuropod.hh"
#include "npy_reader.hh"

#include <cstdint>
#include <exception>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

// The model's answer for each scan.
std::vector<int64_t> read_digits(const neuropod::Neuropod& model,
                                 const demo::NpyArray<float>& images) {
  auto image = model.allocate_tensor<float>(images.shape);
  image->copy_from(images.data.data(), images.data.size());
  const auto outputs = model.infer({{"image", image}});
  return outputs->at("digit")->as_typed_tensor<int64_t>()->get_data_as_vector();
}

void run(const std::string& package, const std::string& images_path,
         const std::string& labels_path) {
  const auto images = demo::read_npy<float>(images_path, "<f4");
  const auto labels = demo::read_npy<int64_t>(labels_path, "<i8");

  neuropod::Neuropod model(package);
  const auto digits = read_digits(model, images);
  if (digits.size() != labels.data.size()) {
    throw std::runtime_error("the model read " + std::to_string(digits.size()) + " scans, " +
                             std::to_string(labels.data.size()) + " have labels");
  }

  size_t right = 0;
  for (size_t i = 0; i < digits.size(); ++i) {
    right += digits[i] == labels.data[i] ? 1 : 0;
  }
  std::cout << model.get_name() << " (" << model.get_platform() << "): " << right << " of "
            << digits.size() << " right\n";
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "usage: neuropod_digits PACKAGE IMAGES.npy LABELS.npy\n";
    return 2;
  }
  try {
    run(argv[1], argv[2], argv[3]);
  } catch (const std::exception& error) {
    std::cerr << "neuropod_digits: " << error.what() << '\n';
    return 1;
  }
  return 0;
}
