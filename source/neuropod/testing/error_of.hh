#pragma once

#include <gtest/gtest.h>

#include "neuropod/base/error.hh"

namespace neuropod {

/// The error that `call` throws; a failure if there is none.
template <typename Call>
Error error_of(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "no error";
  return Error(ErrorCode::kUnavailable, "no error");
}

}  // namespace neuropod
