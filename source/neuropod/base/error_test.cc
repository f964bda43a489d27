#include "neuropod/base/error.hh"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "neuropod/version.hh"

namespace neuropod {
namespace {

struct Row {
  ErrorCode code;
  const char* name;
  ErrorOrigin origin;
  bool retryable;
};

const std::vector<Row> kRows = {
    {ErrorCode::kInvalidArgument, "invalid_argument", ErrorOrigin::kCaller, false},
    {ErrorCode::kSpecMismatch, "spec_mismatch", ErrorOrigin::kCaller, false},
    {ErrorCode::kNotFound, "not_found", ErrorOrigin::kCaller, false},
    {ErrorCode::kInvalidPackage, "invalid_package", ErrorOrigin::kPackage, false},
    {ErrorCode::kCorruptPackage, "corrupt_package", ErrorOrigin::kPackage, false},
    {ErrorCode::kBackendNotFound, "backend_not_found", ErrorOrigin::kBackend, false},
    {ErrorCode::kVersionConflict, "version_conflict", ErrorOrigin::kBackend, false},
    {ErrorCode::kLoadFailed, "load_failed", ErrorOrigin::kBackend, false},
    {ErrorCode::kModelError, "model_error", ErrorOrigin::kModel, false},
    {ErrorCode::kOutOfMemory, "out_of_memory", ErrorOrigin::kResource, true},
    {ErrorCode::kUnavailable, "unavailable", ErrorOrigin::kResource, true},
    {ErrorCode::kWorkerDied, "worker_died", ErrorOrigin::kWorker, true},
    {ErrorCode::kTimeout, "timeout", ErrorOrigin::kWorker, true},
    {ErrorCode::kCancelled, "cancelled", ErrorOrigin::kWorker, false},
};

TEST(ErrorTest, EachCodeHasItsNameOriginAndRetryability) {
  for (const Row& row : kRows) {
    const Error error(row.code, "x");
    EXPECT_STREQ(to_string(row.code), row.name);
    EXPECT_EQ(error.code(), row.code);
    EXPECT_EQ(error.origin(), row.origin) << row.name;
    EXPECT_EQ(error.retryable(), row.retryable) << row.name;
  }
}

TEST(ErrorTest, WhatCarriesThePrefixOnce) {
  EXPECT_STREQ(Error(ErrorCode::kNotFound, "no file").what(), "Neuropod Error: no file");
  EXPECT_STREQ(Error(ErrorCode::kNotFound, "Neuropod Error: no file").what(),
               "Neuropod Error: no file");
  EXPECT_EQ(Error(ErrorCode::kNotFound, "Neuropod Error: no file").message(), "no file");
}

TEST(ErrorTest, IsARuntimeErrorWithAPossiblyEmptyMessage) {
  const Error error(ErrorCode::kModelError, "");
  EXPECT_EQ(error.message(), "");
  const std::runtime_error& base = error;
  EXPECT_STREQ(base.what(), "Neuropod Error: ");
}

TEST(ErrorTest, ContextGoesBeforeTheMessageAndKeepsTheCode) {
  const Error error = Error(ErrorCode::kSpecMismatch, "tensor 'x' is float64")
                          .with_context("input")
                          .with_context("model 'digits'");
  EXPECT_STREQ(error.what(), "Neuropod Error: model 'digits': input: tensor 'x' is float64");
  EXPECT_EQ(error.code(), ErrorCode::kSpecMismatch);
}

TEST(ErrorTest, ThrowErrorThrowsCodeAndMessage) {
  try {
    throw_error(ErrorCode::kTimeout, "late");
    FAIL() << "throw_error returned";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kTimeout);
    EXPECT_EQ(error.message(), "late");
  }
}

TEST(VersionTest, LibraryIsTheOneThisTestWasCompiledAgainst) {
  EXPECT_STREQ(library_version(), NEUROPOD_VERSION);
  EXPECT_EQ(std::string(NEUROPOD_VERSION).find(std::to_string(NEUROPOD_MAJOR_VERSION) + "."), 0u);
}

}  // namespace
}  // namespace neuropod
