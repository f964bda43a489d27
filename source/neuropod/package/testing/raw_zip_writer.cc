#include "neuropod/package/testing/raw_zip_writer.hh"

#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>

namespace neuropod {
namespace {

void put(std::string* out, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out->push_back(static_cast<char>(value >> (8 * i)));
}

struct Fields {
  uint16_t flags, method;
  uint32_t crc;
  uint64_t compressed_size, size, offset;
};

// What both kinds of header share, from "version needed" to "uncompressed size".
void put_common(std::string* out, const RawZipEntry& entry, const Fields& fields, bool local) {
  const bool later = local && entry.data_descriptor;
  put(out, entry.zip64 ? 45 : 20, 2);
  put(out, fields.flags, 2);
  put(out, fields.method, 2);
  put(out, 0, 2);       // time
  put(out, 0x2821, 2);  // 2000-01-01
  put(out, later ? 0 : fields.crc, 4);
  put(out, later ? 0 : (entry.zip64 ? 0xffffffffu : fields.compressed_size), 4);
  put(out, later ? 0 : (entry.zip64 ? 0xffffffffu : fields.size), 4);
}

void put_local(std::string* out, const RawZipEntry& entry, const Fields& fields) {
  const std::string& name = entry.local_name.value_or(entry.name);
  put(out, 0x04034b50, 4);
  put_common(out, entry, fields, /*local=*/true);
  put(out, name.size(), 2);
  put(out, entry.zip64 ? 20 : 0, 2);
  *out += name;
  if (!entry.zip64) return;
  put(out, 1, 2);
  put(out, 16, 2);
  put(out, fields.size, 8);
  put(out, fields.compressed_size, 8);
}

void put_central(std::string* out, const RawZipEntry& entry, const Fields& fields) {
  put(out, 0x02014b50, 4);
  put(out, 3u << 8 | 45, 2);  // made on Unix
  put_common(out, entry, fields, /*local=*/false);
  put(out, entry.name.size(), 2);
  put(out, entry.zip64 ? 28 : 0, 2);
  put(out, 0, 2);  // comment
  put(out, 0, 2);  // disk
  put(out, 0, 2);  // internal attributes
  put(out, entry.external_attributes, 4);
  put(out, entry.zip64 ? 0xffffffffu : fields.offset, 4);
  *out += entry.name;
  if (!entry.zip64) return;
  put(out, 1, 2);
  put(out, 24, 2);
  put(out, fields.size, 8);
  put(out, fields.compressed_size, 8);
  put(out, fields.offset, 8);
}

void put_end(std::string* out, uint64_t count, uint64_t size, uint64_t offset, bool zip64) {
  const uint64_t end = out->size();
  if (zip64) {
    put(out, 0x06064b50, 4);
    put(out, 44, 8);
    put(out, 45, 2);
    put(out, 45, 2);
    put(out, 0, 8);  // disks
    put(out, count, 8);
    put(out, count, 8);
    put(out, size, 8);
    put(out, offset, 8);
    put(out, 0x07064b50, 4);
    put(out, 0, 4);
    put(out, end, 8);
    put(out, 1, 4);
  }
  put(out, 0x06054b50, 4);
  put(out, 0, 4);  // disks
  put(out, zip64 ? 0xffffu : count, 2);
  put(out, zip64 ? 0xffffu : count, 2);
  put(out, zip64 ? 0xffffffffu : size, 4);
  put(out, zip64 ? 0xffffffffu : offset, 4);
  put(out, 0, 2);
}

Fields fields_of(const RawZipEntry& entry, const std::string& data, uint64_t offset) {
  const auto* bytes = reinterpret_cast<const Bytef*>(entry.content.data());
  Fields fields{};
  fields.flags = static_cast<uint16_t>(entry.flags | (entry.data_descriptor ? 8 : 0));
  fields.method = entry.method.value_or(entry.deflate ? 8 : 0);
  fields.crc = entry.crc.value_or(static_cast<uint32_t>(crc32_z(0, bytes, entry.content.size())));
  fields.size = entry.size.value_or(static_cast<uint32_t>(entry.content.size()));
  fields.compressed_size = entry.compressed_size.value_or(static_cast<uint32_t>(data.size()));
  fields.offset = entry.offset.value_or(static_cast<uint32_t>(offset));
  return fields;
}

}  // namespace

std::string raw_deflate(const std::string& content) {
  z_stream stream{};
  if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 9, Z_DEFAULT_STRATEGY) !=
      Z_OK) {
    throw std::runtime_error("deflateInit2");
  }
  std::string data(deflateBound(&stream, content.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(data.data());
  stream.avail_out = static_cast<uInt>(data.size());
  const int result = deflate(&stream, Z_FINISH);
  data.resize(stream.total_out);
  deflateEnd(&stream);
  if (result != Z_STREAM_END) throw std::runtime_error("deflate");
  return data;
}

std::string write_raw_zip(const std::vector<RawZipEntry>& entries) {
  std::string out;
  std::string central;
  bool zip64 = false;
  for (const RawZipEntry& entry : entries) {
    const std::string data = entry.deflate ? raw_deflate(entry.content) : entry.content;
    const Fields fields = fields_of(entry, data, out.size());
    put_local(&out, entry, fields);
    out += data;
    if (entry.data_descriptor) {
      put(&out, 0x08074b50, 4);
      put(&out, fields.crc, 4);
      put(&out, fields.compressed_size, 4);
      put(&out, fields.size, 4);
    }
    put_central(&central, entry, fields);
    zip64 |= entry.zip64;
  }
  const uint64_t offset = out.size();
  out += central;
  put_end(&out, entries.size(), central.size(), offset, zip64);
  return out;
}

std::string write_zip(const std::vector<std::pair<std::string, std::string>>& files) {
  std::vector<RawZipEntry> entries;
  for (const auto& [name, content] : files) {
    RawZipEntry entry;
    entry.name = name;
    entry.content = content;
    entry.deflate = true;
    entries.push_back(entry);
  }
  return write_raw_zip(entries);
}

void write_file(const std::string& path, const std::string& content) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream stream(path, std::ios::binary);
  stream << content;
  if (!stream.flush()) throw std::runtime_error("cannot write " + path);
}

}  // namespace neuropod
