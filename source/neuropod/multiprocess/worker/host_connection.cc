#include "neuropod/multiprocess/worker/host_connection.hh"

#include <unistd.h>

#include <ctime>
#include <exception>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "neuropod/backends/framework_libraries.hh"
#include "neuropod/backends/worker_memory.hh"
#include "neuropod/base/error.hh"
#include "neuropod/base/logging.hh"
#include "neuropod/multiprocess/fault_point.hh"
#include "neuropod/version.hh"

namespace neuropod::multiprocess {
namespace {

constexpr size_t kDescriptors = 3;  // channel, input arena, output arena

// A model that hosts may share.
struct SharedModel {
  std::mutex loading;
  std::weak_ptr<NeuropodBackend> model;  // guarded by `loading`
};

// Process-wide: hosts that ask for the same model share it. They wait for each other's loading only
// if they do.
std::shared_ptr<SharedModel> shared_model(const LoadRequest& request) {
  static auto* const mutex = new std::mutex;
  static auto* const models = new std::map<std::string, std::shared_ptr<SharedModel>>;
  LoadRequest same = request;
  same.host_pid = 0;
  const std::string key = serialize(same);
  std::lock_guard lock(*mutex);
  std::erase_if(*models, [](const auto& entry) {
    return entry.second.use_count() == 1 && entry.second->model.expired();
  });
  std::shared_ptr<SharedModel>& model = (*models)[key];
  if (model == nullptr) model = std::make_shared<SharedModel>();
  return model;
}

// Frameworks are loaded one after the other: each host says where its own lie.
std::shared_ptr<NeuropodBackend> open_model(const LoadRequest& request,
                                            const RuntimeOptions& options) {
  static auto* const mutex = new std::mutex;
  std::lock_guard lock(*mutex);
  set_module_folders(request.module_folders);
  std::shared_ptr<NeuropodBackend> model = load_backend(request.path, request.overrides, options);
  fault_point("before_adopt");
  adopt_process_memory(model->get_platform().c_str(), ResultMemory::instance());
  return model;
}

std::shared_ptr<NeuropodBackend> load_model(const LoadRequest& request) {
  const std::shared_ptr<SharedModel> shared = shared_model(request);
  std::lock_guard lock(shared->loading);
  if (auto model = shared->model.lock()) return model;

  RuntimeOptions options = request.options;
  options.use_ope = false;
  options.collect_metrics = false;                 // the host counts
  options.disable_shape_and_type_checking = true;  // and checks
  if (options.ope_options.threads > 0) options.threads = options.ope_options.threads;
  std::shared_ptr<NeuropodBackend> model = open_model(request, options);
  fault_point("before_load");
  model->load_model();
  fault_point("after_load");
  shared->model = model;
  return model;
}

bool understands(const LoadRequest& request) {
  return request.protocol == kProtocolVersion && request.version == NEUROPOD_VERSION &&
         request.abi == NEUROPOD_ABI_VERSION;
}

}  // namespace

HostConnection::HostConnection(ControlSocket socket) : socket_(std::move(socket)) {}

HostConnection::~HostConnection() {
  if (hosted_.results == nullptr) return;
  hosted_.lent = nullptr;
  hosted_.model = nullptr;
  ResultMemory::instance().remove(hosted_.results);
}

void HostConnection::stop() {
  {
    std::lock_guard lock(mutex_);
    stopped_ = true;
    if (hosted_.channel != nullptr) hosted_.channel->stop();
  }
  changed_.notify_all();
}

void HostConnection::serve() {
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return request_ || stopped_; });
    if (stopped_) return;
  }
  run(*request_);  // nobody changes it any more
}

bool HostConnection::handle_message() {
  try {
    std::optional<ControlSocket::Message> message = socket_.receive();
    if (!message) return false;
    ControlMessage content = deserialize(message->text);
    if (auto* request = std::get_if<LoadRequest>(&content)) {
      if (!understands(*request)) {
        socket_.send(
            serialize(VersionRefusal{kProtocolVersion, NEUROPOD_VERSION, NEUROPOD_ABI_VERSION}));
        return true;  // the host closes
      }
      accept(std::move(*request), std::move(message->descriptors));
      return true;
    }
    if (std::holds_alternative<TrimRequest>(content)) {
      if (hosted_.results != nullptr) {
        hosted_.lent->drain();
        hosted_.results->trim();
      }
      return true;
    }
    return false;  // a request to end, or a reply, which hosts don't send
  } catch (const std::exception& exception) {
    log(LogLevel::kError, fmt::format("a host's message is refused: {}", exception.what()));
    return false;
  }
}

void HostConnection::accept(LoadRequest request, std::vector<OwnedDescriptor> descriptors) {
  std::lock_guard lock(mutex_);
  if (request_ || descriptors.size() != kDescriptors) {
    throw_error(
        ErrorCode::kInvalidArgument,
        fmt::format("a connection loads one model, with {} descriptors; this request came {} "
                    "with {}",
                    kDescriptors, request_ ? "again" : "first", descriptors.size()));
  }
  hosted_.spin = request.options.ope_options.spin;
  hosted_.channel = std::make_shared<WorkerChannel>(
      Arena::attach(std::move(descriptors[0]), sizeof(ChannelLayout)));
  hosted_.inputs = Arena::attach(std::move(descriptors[1]));
  hosted_.outputs = Arena::attach(std::move(descriptors[2]));
  hosted_.results = ResultMemory::instance().add(hosted_.outputs);
  hosted_.lent = std::make_shared<LentResults>(hosted_.channel, hosted_.results);
  request_ = std::move(request);
  changed_.notify_all();
}

void HostConnection::run(const LoadRequest& request) {
  ChannelStatus& status = hosted_.channel->layout().status;
  status.worker_pid.store(static_cast<uint64_t>(::getpid()));
  status.started_at.store(static_cast<uint64_t>(std::time(nullptr)));
  try {
    hosted_.model = load_model(request);
    std::vector<std::string> names;
    for (const TensorSpec& spec : hosted_.model->get_outputs()) names.push_back(spec.name);
    hosted_.output_names = NameIndex(names);
  } catch (const Error& error) {
    socket_.send(serialize(LoadFailure{error.code(), error.message()}));
    return;
  } catch (const std::exception& exception) {
    socket_.send(serialize(LoadFailure{ErrorCode::kLoadFailed, exception.what()}));
    return;
  }
  fault_point("before_reply");
  status.ready.store(1);
  if (!socket_.send(serialize(
          LoadReply{NEUROPOD_VERSION, ::getpid(), hosted_.model->inputs_with_defaults()}))) {
    return;
  }
  std::vector<std::thread> others;
  for (int i = 1; i < request.options.ope_options.concurrency; ++i) {
    others.emplace_back([this] { run_calls(hosted_); });
  }
  run_calls(hosted_);
  for (std::thread& other : others) other.join();
}

}  // namespace neuropod::multiprocess
