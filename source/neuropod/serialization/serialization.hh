#pragma once

#include <functional>
#include <iosfwd>
#include <memory>
#include <string>
#include <vector>

#include "neuropod/backends/tensor_allocator.hh"
#include "neuropod/base/visibility.hh"
#include "neuropod/internal/neuropod_value.hh"

/// For a class derived from NeuropodValue: the tag under which its values are written.
#define SET_SERIALIZE_TAG(tag) \
 public:                       \
  const char* get_serialize_tag() const override { return tag; }

namespace neuropod {

/// How values of a kind that this library doesn't know are written and read. The list of them is an
/// argument, not a registry of the process: what a stream may hold is the caller's decision.
/// Tensors need none.
struct ValueFormat {
  /// What get_serialize_tag() of such values returns: 1 to 255 bytes.
  std::string tag;
  /// Writes the payload.
  std::function<void(std::ostream& out, const NeuropodValue& value)> write;
  /// Reads it back, from a stream that holds the payload and nothing else.
  std::function<std::shared_ptr<NeuropodValue>(std::istream& in,
                                               NeuropodTensorAllocator& allocator)>
      read;
};
using ValueFormats = std::vector<ValueFormat>;

/// The format of a class that has `void write_to(std::ostream&) const` and a static
/// `std::shared_ptr<Class> read_from(std::istream&, NeuropodTensorAllocator&)`:
/// `serialize(out, value, {MAKE_SERIALIZABLE(Box, "box")})`.
#define MAKE_SERIALIZABLE(Class, tag)                                        \
  ::neuropod::ValueFormat {                                                  \
    tag,                                                                     \
        [](std::ostream& out, const ::neuropod::NeuropodValue& value) {      \
          static_cast<const Class&>(value).write_to(out);                    \
        },                                                                   \
        [](std::istream& in, ::neuropod::NeuropodTensorAllocator& allocator) \
            -> std::shared_ptr<::neuropod::NeuropodValue> {                  \
          return Class::read_from(in, allocator);                            \
        }                                                                    \
  }

/// Writes a value, or inputs or outputs by name, as bytes that every version of this library on
/// every machine reads back: docs/formats/tensor_serialization.md. Several may follow each other in
/// one stream. The same content gives the same bytes.
///
/// **Errors**: invalid_argument for a null pointer, a kind without a format, or a tensor that isn't
/// on the CPU; unavailable if the stream takes no more (a full disk).
NEUROPOD_EXPORT void serialize(std::ostream& out, const NeuropodValue& value,
                               const ValueFormats& formats = {});
NEUROPOD_EXPORT void serialize(std::ostream& out, const NeuropodValueMap& values,
                               const ValueFormats& formats = {});

/// Reads what serialize() wrote: `T` is std::shared_ptr<NeuropodValue> or NeuropodValueMap. The
/// stream is left behind the value. Memory of tensors comes from `allocator`.
///
/// The bytes may come from a stranger: every one is checked, and no more memory is taken than a
/// small multiple of what the stream has delivered.
///
/// **Errors**: invalid_argument saying what is wrong: another format or version, the other kind of
/// `T`, the end of the stream, a checksum that differs. The stream's position is then unspecified.
template <typename T>
T deserialize(std::istream& in, NeuropodTensorAllocator& allocator,
              const ValueFormats& formats = {});

template <>
NEUROPOD_EXPORT std::shared_ptr<NeuropodValue> deserialize<std::shared_ptr<NeuropodValue>>(
    std::istream& in, NeuropodTensorAllocator& allocator, const ValueFormats& formats);
template <>
NEUROPOD_EXPORT NeuropodValueMap deserialize<NeuropodValueMap>(std::istream& in,
                                                               NeuropodTensorAllocator& allocator,
                                                               const ValueFormats& formats);

}  // namespace neuropod
