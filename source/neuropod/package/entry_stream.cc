#include "neuropod/package/entry_stream.hh"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <new>
#include <streambuf>
#include <utility>

#include "neuropod/base/error.hh"

namespace neuropod {
namespace {

constexpr size_t kBufferBytes = size_t{256} << 10;

[[noreturn]] void throw_corrupt(const EntrySource& source, const std::string& reason) {
  throw_error(ErrorCode::kCorruptPackage,
              fmt::format("'{}' in package '{}' is corrupt: {}; get the package again", source.name,
                          source.file->path(), reason));
}

// Yields the bytes of an entry from any position.
class EntryReader {
 public:
  explicit EntryReader(EntrySource source) : source_(std::move(source)) {}
  virtual ~EntryReader() = default;
  EntryReader(const EntryReader&) = delete;
  EntryReader& operator=(const EntryReader&) = delete;

  // Reads `count` bytes from `position`; both lie inside the entry, `count` isn't 0.
  virtual void read(uint64_t position, char* to, size_t count) = 0;

  const EntrySource& source() const { return source_; }

 protected:
  const EntrySource source_;
};

class StoredReader : public EntryReader {
 public:
  using EntryReader::EntryReader;

  void read(uint64_t position, char* to, size_t count) override {
    if (source_.file->read_at(source_.offset + position, to, count) < count) {
      throw_corrupt(source_, "the file became shorter while it was read");
    }
  }
};

// A zlib stream over the compressed bytes of an entry.
class Inflater {
 public:
  explicit Inflater(const EntrySource& source)
      : source_(source), input_(std::make_unique_for_overwrite<unsigned char[]>(kBufferBytes)) {
    // Negative: neither a zlib nor a gzip header, as zip archives have it.
    if (inflateInit2(&stream_, -MAX_WBITS) != Z_OK) throw std::bad_alloc();
  }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  uint64_t position() const { return position_; }

  void read_next(char* to, size_t count) {
    while (count > 0) {
      const size_t wanted = std::min<size_t>(count, std::numeric_limits<uInt>::max());
      const size_t got = inflate_some(to, wanted);
      if (got == 0) throw_corrupt(source_, "it ends before its declared size");
      to += got;
      count -= got;
      position_ += got;
    }
    if (position_ == source_.size) expect_end();
  }

 private:
  // Up to `count` bytes; 0 only at the end of the data.
  size_t inflate_some(char* to, size_t count) {
    stream_.next_out = reinterpret_cast<Bytef*>(to);
    stream_.avail_out = static_cast<uInt>(count);
    while (!ended_ && stream_.avail_out == count) {
      if (stream_.avail_in == 0) refill();
      const int result = inflate(&stream_, Z_NO_FLUSH);
      if (result == Z_STREAM_END) {
        ended_ = true;
      } else if (result == Z_MEM_ERROR) {
        throw std::bad_alloc();
      } else if (result == Z_BUF_ERROR && consumed_ == source_.compressed_size) {
        throw_corrupt(source_, "its compressed data is cut off");
      } else if (result != Z_OK && result != Z_BUF_ERROR) {
        throw_corrupt(source_, "its compressed data is damaged");
      }
    }
    return count - stream_.avail_out;
  }

  void refill() {
    const uint64_t left = source_.compressed_size - consumed_;
    const size_t count = static_cast<size_t>(std::min<uint64_t>(left, kBufferBytes));
    if (source_.file->read_at(source_.offset + consumed_, input_.get(), count) < count) {
      throw_corrupt(source_, "the file became shorter while it was read");
    }
    consumed_ += count;
    stream_.next_in = input_.get();
    stream_.avail_in = static_cast<uInt>(count);
  }

  void expect_end() {
    char surplus = 0;
    if (inflate_some(&surplus, 1) > 0)
      throw_corrupt(source_, "it is longer than its declared size");
  }

  const EntrySource& source_;
  const std::unique_ptr<unsigned char[]> input_;
  z_stream stream_{};
  uint64_t consumed_ = 0;
  uint64_t position_ = 0;
  bool ended_ = false;
};

class DeflatedReader : public EntryReader {
 public:
  using EntryReader::EntryReader;

  void read(uint64_t position, char* to, size_t count) override {
    if (everything_ == nullptr && !(inflater_ && inflater_->position() == position)) {
      inflater_.reset();
      if (position != 0) inflate_everything();
    }
    if (everything_ != nullptr) {
      std::memcpy(to, everything_.get() + position, count);
      return;
    }
    if (!inflater_) inflater_ = std::make_unique<Inflater>(source_);
    inflater_->read_next(to, count);
  }

 private:
  void inflate_everything() {
    const size_t size = static_cast<size_t>(source_.size);
    auto memory = std::make_unique_for_overwrite<char[]>(size);
    Inflater(source_).read_next(memory.get(), size);
    if (source_.crc &&
        crc32_z(0, reinterpret_cast<const Bytef*>(memory.get()), size) != source_.crc) {
      throw_corrupt(source_, "its checksum differs");
    }
    everything_ = std::move(memory);
  }

  std::unique_ptr<Inflater> inflater_;
  std::unique_ptr<const char[]> everything_;
};

class EntryStreambuf : public std::streambuf {
 public:
  explicit EntryStreambuf(std::unique_ptr<EntryReader> reader) : reader_(std::move(reader)) {}

 protected:
  int_type underflow() override {
    if (gptr() < egptr()) return traits_type::to_int_type(*gptr());
    const size_t count = static_cast<size_t>(std::min<uint64_t>(size() - next_, kBufferBytes));
    if (count == 0) return traits_type::eof();
    if (!buffer_) buffer_ = std::make_unique_for_overwrite<char[]>(kBufferBytes);
    setg(nullptr, nullptr, nullptr);
    read(buffer_.get(), count);
    setg(buffer_.get(), buffer_.get(), buffer_.get() + count);
    return traits_type::to_int_type(*gptr());
  }

  std::streamsize xsgetn(char* to, std::streamsize wanted) override {
    std::streamsize done = 0;
    while (done < wanted) {
      const std::streamsize buffered = std::min<std::streamsize>(egptr() - gptr(), wanted - done);
      if (buffered > 0) {
        std::memcpy(to + done, gptr(), static_cast<size_t>(buffered));
        setg(eback(), gptr() + buffered, egptr());
        done += buffered;
        continue;
      }
      const uint64_t direct =
          std::min<uint64_t>(static_cast<uint64_t>(wanted - done), size() - next_);
      if (direct == 0) break;
      if (direct >= kBufferBytes) {
        setg(nullptr, nullptr, nullptr);
        read(to + done, static_cast<size_t>(direct));
        done += static_cast<std::streamsize>(direct);
      } else {
        underflow();
      }
    }
    return done;
  }

  std::streamsize showmanyc() override {
    return next_ == size() ? -1 : static_cast<std::streamsize>(size() - next_);
  }

  pos_type seekoff(off_type offset, std::ios::seekdir direction, std::ios::openmode mode) override {
    off_type base = 0;
    if (direction == std::ios::cur) base = static_cast<off_type>(position());
    if (direction == std::ios::end) base = static_cast<off_type>(size());
    off_type target = 0;
    if (__builtin_add_overflow(base, offset, &target)) return pos_type(off_type(-1));
    return seekpos(pos_type(target), mode);
  }

  pos_type seekpos(pos_type target, std::ios::openmode mode) override {
    const off_type offset = target;
    if (offset < 0 || static_cast<uint64_t>(offset) > size() || (mode & std::ios::out) != 0) {
      return pos_type(off_type(-1));
    }
    const uint64_t wanted = static_cast<uint64_t>(offset);
    const uint64_t first = next_ - static_cast<uint64_t>(egptr() - eback());
    if (wanted >= first && wanted <= next_) {
      setg(eback(), eback() + (wanted - first), egptr());
    } else {
      setg(nullptr, nullptr, nullptr);
      next_ = wanted;
    }
    return target;
  }

 private:
  uint64_t size() const { return reader_->source().size; }
  uint64_t position() const { return next_ - static_cast<uint64_t>(egptr() - gptr()); }

  void read(char* to, size_t count) {
    try {
      reader_->read(next_, to, count);
    } catch (const std::bad_alloc&) {
      throw_error(ErrorCode::kOutOfMemory,
                  fmt::format("not enough memory to inflate '{}' ({} bytes) of package '{}'",
                              reader_->source().name, size(), reader_->source().file->path()));
    }
    update_crc(to, count);
    next_ += count;
  }

  // Readers that jump about leave gaps: only what continues the bytes hashed so far counts.
  void update_crc(const char* data, size_t count) {
    if (!reader_->source().crc || next_ > hashed_ || next_ + count <= hashed_) return;
    const size_t skipped = static_cast<size_t>(hashed_ - next_);
    crc_ = static_cast<uint32_t>(
        crc32_z(crc_, reinterpret_cast<const Bytef*>(data) + skipped, count - skipped));
    hashed_ = next_ + count;
    if (hashed_ == size() && crc_ != *reader_->source().crc) {
      throw_corrupt(reader_->source(), fmt::format("its checksum is {:08x}, expected {:08x}", crc_,
                                                   *reader_->source().crc));
    }
  }

  const std::unique_ptr<EntryReader> reader_;
  std::unique_ptr<char[]> buffer_;
  uint64_t next_ = 0;    // position of egptr() in the entry
  uint64_t hashed_ = 0;  // bytes from the start that crc_ covers
  uint32_t crc_ = 0;
};

class EntryStream : public std::istream {
 public:
  explicit EntryStream(std::unique_ptr<EntryReader> reader)
      : std::istream(nullptr), buffer_(std::move(reader)) {
    rdbuf(&buffer_);
  }

 private:
  EntryStreambuf buffer_;
};

}  // namespace

std::unique_ptr<std::istream> open_entry_stream(EntrySource source) {
  std::unique_ptr<EntryReader> reader;
  if (source.deflated) {
    reader = std::make_unique<DeflatedReader>(std::move(source));
  } else {
    reader = std::make_unique<StoredReader>(std::move(source));
  }
  return std::make_unique<EntryStream>(std::move(reader));
}

}  // namespace neuropod
