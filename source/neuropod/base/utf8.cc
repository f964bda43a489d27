#include "neuropod/base/utf8.hh"

#include <nlohmann/json.hpp>

namespace neuropod {

std::string valid_utf8(const std::string& text) {
  using Json = nlohmann::json;
  return Json::parse(Json(text).dump(-1, ' ', false, Json::error_handler_t::replace));
}

}  // namespace neuropod
