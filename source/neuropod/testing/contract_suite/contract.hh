#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "neuropod/neuropod.hh"
#include "neuropod/testing/contract_suite/fixtures.hh"
#include "neuropod/testing/error_of.hh"

namespace neuropod {

/// Base of every test of the suite; docs/contract_suite.md lists them by number.
class Contract : public ::testing::Test {
 protected:
  using Edit = contract::PackageVariant::Edit;

  /// Options of every test that isn't about devices.
  static RuntimeOptions on_cpu();
  static RuntimeOptions on_gpu();

  /// Whether the suite's models run in processes of their own (`--out-of-process`).
  static bool out_of_process();

  /// True if the backend can do `capability`. Otherwise the test is skipped, or fails if the
  /// fixtures file gives no reason: `if (!able("device")) return;`.
  bool able(const std::string& capability);

  /// Whether models can run on a device, wherever their callers' tensors are. able("device") is
  /// about such tensors, which a worker's host doesn't have: `if (!runs_on_device()) return;`.
  bool runs_on_device();

  /// The same for a package: `if (!has("strings")) return;`.
  bool has(const std::string& package);

  /// True if tensors of `dtype` are in the table.
  static bool carries(const std::string& dtype);

  /// Loads a package of the fixtures as it is.
  static Neuropod load(const std::string& package, const RuntimeOptions& options = on_cpu());

  /// Loads a copy whose config.json was edited; the copy is gone when this returns.
  static Neuropod load_variant(const std::string& package, const Edit& edit,
                               const RuntimeOptions& options = on_cpu());

  /// The identity model for tensors of `dtype` with `rank` dimensions of any size.
  static Neuropod load_identity(const std::string& dtype, size_t rank);

  static std::shared_ptr<TypedNeuropodTensor<float>> floats(const Neuropod& model,
                                                            const std::vector<float>& values);
  static std::shared_ptr<TypedNeuropodTensor<std::string>> strings(
      const Neuropod& model, const std::vector<int64_t>& dims,
      const std::vector<std::string>& values);

  /// A float32 output's content, wherever the output is.
  static std::vector<float> values(const NeuropodValueMap& outputs, const std::string& name);
  static std::vector<std::string> texts(const NeuropodValueMap& outputs, const std::string& name);

 private:
  bool declared(const std::string& key, bool present);
};

/// Runs every model of the suite in a process of its own.
void run_out_of_process();

/// Fails the run if a test was skipped other than by Contract::able() and Contract::has().
void watch_for_undeclared_skips();

}  // namespace neuropod
