#include "neuropod/internal/deleter.hh"

#include <memory>

namespace neuropod {
namespace {

struct Registered {
  Deleter deleter;
  void* data;
};

}  // namespace

void* register_deleter(const Deleter& deleter, void* data) {
  return std::make_unique<Registered>(Registered{deleter, data}).release();
}

void run_deleter(void* handle) {
  const std::unique_ptr<Registered> registered(static_cast<Registered*>(handle));
  if (registered->deleter) registered->deleter(registered->data);
}

}  // namespace neuropod
