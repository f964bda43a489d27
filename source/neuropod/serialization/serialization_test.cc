#include "neuropod/serialization/serialization.hh"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <sstream>
#include <streambuf>
#include <string>
#include <utility>
#include <vector>

#include "neuropod/core/generic_tensor.hh"

namespace neuropod {
namespace {

using Value = std::shared_ptr<NeuropodValue>;

// A stream that can't be asked for its length, like a pipe.
class Pipe : public std::streambuf {
 public:
  explicit Pipe(std::string bytes) : bytes_(std::move(bytes)) {
    setg(bytes_.data(), bytes_.data(), bytes_.data() + bytes_.size());
  }

 private:
  std::string bytes_;
};

// A stream on which the disk is full after `room` bytes.
class FullDisk : public std::streambuf {
 public:
  explicit FullDisk(size_t room) : room_(room) {}

 protected:
  int_type overflow(int_type character) override {
    if (room_ == 0) return traits_type::eof();
    --room_;
    return character;
  }

 private:
  size_t room_;
};

class SerializationTest : public ::testing::Test {
 protected:
  template <typename T>
  static std::string bytes_of(const T& value) {
    std::ostringstream out;
    serialize(out, value);
    return out.str();
  }

  template <typename T>
  T read(const std::string& bytes) {
    std::istringstream in(bytes);
    return deserialize<T>(in, *allocator_);
  }

  std::string refusal(const std::string& bytes) {
    try {
      read<Value>(bytes);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument) << error.message();
      return error.message();
    }
    ADD_FAILURE() << "it was read";
    return {};
  }

  template <typename T>
  void check_dtype(const T& value) {
    for (size_t rank = 0; rank <= 6; ++rank) {
      for (const int64_t last : {2, 0}) {
        std::vector<int64_t> dims(rank, 2);
        if (rank > 0) dims.back() = last;
        auto tensor = allocator_->full<T>(dims, value);
        const Value back = read<Value>(bytes_of<NeuropodValue>(*tensor));
        EXPECT_TRUE(*back == *tensor) << *tensor;
        EXPECT_EQ(back->as_tensor()->get_dims(), dims);
      }
    }
  }

  std::unique_ptr<NeuropodTensorAllocator> allocator_ = get_generic_tensor_allocator();
};

TEST_F(SerializationTest, EveryDtypeAtEveryRankComesBack) {
  check_dtype<float>(1.5f);
  check_dtype<double>(-2.5);
  check_dtype<std::string>(std::string("nul\0nul", 7));
  check_dtype<int8_t>(-8);
  check_dtype<int16_t>(-16);
  check_dtype<int32_t>(-32);
  check_dtype<int64_t>(std::numeric_limits<int64_t>::min());
  check_dtype<uint8_t>(200);
  check_dtype<uint16_t>(65535);
  check_dtype<uint32_t>(4000000000u);
  check_dtype<uint64_t>(std::numeric_limits<uint64_t>::max());
  check_dtype<bool>(true);
  check_dtype<float16>(float16(0.5f));
  check_dtype<bfloat16>(bfloat16(3.0f));
  check_dtype<std::complex<float>>({1, -1});
  check_dtype<std::complex<double>>({0, 2});
}

TEST_F(SerializationTest, TheBytesAreThoseOfTheFormat) {
  auto tensor = allocator_->allocate_tensor<int16_t>({1, 2});
  tensor->copy_from({1, -2});
  const std::string bytes = bytes_of<NeuropodValue>(*tensor);
  const std::string expected(
      "NPOD\x01\x01"                          // magic, version, one value
      "\x0eneuropodtensor"                    // tag
      "\x19\0\0\0\0\0\0\0"                    // 25 bytes follow
      "\x04"                                  // int16
      "\x02\0\0\0"                            // rank
      "\x01\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0"  // shape
      "\x01\0\xfe\xff",                       // elements
      6 + 15 + 8 + 1 + 4 + 16 + 4);
  ASSERT_EQ(bytes.size(), expected.size() + 4);
  EXPECT_EQ(bytes.substr(0, expected.size()), expected);
  // CRC-32 as zip computes it, from Python's zlib.crc32.
  EXPECT_EQ(bytes.substr(expected.size()), std::string("\x0d\xdb\xb3\x02", 4));
}

TEST_F(SerializationTest, MapsComeBackAndTheirBytesDoNotDependOnTheOrder) {
  NeuropodValueMap values{{"x", allocator_->arange<float>(5)},
                          {"", allocator_->full<std::string>({2}, "s")},
                          {"\xC3\xA4", allocator_->zeros<bool>({})}};
  NeuropodValueMap reversed;
  reversed.reserve(1000);
  for (const char* name : {"\xC3\xA4", "", "x"}) reversed.emplace(name, values.at(name));
  const std::string bytes = bytes_of(values);
  EXPECT_EQ(bytes, bytes_of(reversed));
  const auto back = read<NeuropodValueMap>(bytes);
  ASSERT_EQ(back.size(), 3u);
  for (const auto& [name, value] : values) EXPECT_TRUE(*back.at(name) == *value) << name;
  EXPECT_TRUE(read<NeuropodValueMap>(bytes_of(NeuropodValueMap())).empty());
}

TEST_F(SerializationTest, SeveralValuesFollowEachOtherInOneStream) {
  std::stringstream stream;
  auto first = allocator_->arange<float>(3);
  auto second = allocator_->full<std::string>({2}, "two");
  serialize(stream, *first);
  serialize(stream, NeuropodValueMap{{"m", second}});
  serialize(stream, *second);
  EXPECT_TRUE(*deserialize<Value>(stream, *allocator_) == *first);
  EXPECT_TRUE(*deserialize<NeuropodValueMap>(stream, *allocator_).at("m") == *second);
  EXPECT_TRUE(*deserialize<Value>(stream, *allocator_) == *second);
  EXPECT_EQ(stream.peek(), std::stringstream::traits_type::eof());
}

TEST_F(SerializationTest, LargeTensorsComeBackFromFilesAndPipes) {
  auto numbers = allocator_->arange<int32_t>(1'000'000);
  auto strings = allocator_->full<std::string>({3}, std::string(3 << 20, 'z'));
  for (const NeuropodTensor* tensor :
       {static_cast<NeuropodTensor*>(numbers.get()), static_cast<NeuropodTensor*>(strings.get())}) {
    const std::string bytes = bytes_of<NeuropodValue>(*tensor);
    EXPECT_TRUE(*read<Value>(bytes) == *tensor);
    Pipe pipe(bytes);
    std::istream in(&pipe);
    EXPECT_TRUE(*deserialize<Value>(in, *allocator_) == *tensor);
  }
}

TEST_F(SerializationTest, NanComesBack) {
  auto tensor = allocator_->full<float>({1}, std::nanf(""));
  const Value back = read<Value>(bytes_of<NeuropodValue>(*tensor));
  EXPECT_TRUE(std::isnan(back->as_tensor()->as_scalar<float>()));
}

TEST_F(SerializationTest, SaysWhatIsWrongWithTheBytes) {
  const std::string good = bytes_of<NeuropodValue>(*allocator_->arange<float>(3));
  EXPECT_NE(refusal("").find("the stream ends"), std::string::npos);
  EXPECT_NE(refusal("PK\x03\x04 and so on").find("doesn't begin with 'NPOD'"), std::string::npos);
  std::string other = good;
  other[4] = 2;
  EXPECT_NE(refusal(other).find("version 2"), std::string::npos);
  other = good;
  other[7] = 'N';
  EXPECT_NE(refusal(other).find("tag 'Neuropodtensor'"), std::string::npos);
  other = good;
  other[good.size() - 6] ^= 1;
  EXPECT_NE(refusal(other).find("checksum"), std::string::npos);
  EXPECT_NE(refusal(bytes_of(NeuropodValueMap())).find("a map of values"), std::string::npos);
  EXPECT_THROW(read<NeuropodValueMap>(good), Error);
}

TEST_F(SerializationTest, AnEndedStreamThatThrowsIsAnErrorToo) {
  std::istringstream in(bytes_of<NeuropodValue>(*allocator_->arange<float>(3)).substr(0, 40));
  in.exceptions(std::ios_base::badbit | std::ios_base::failbit | std::ios_base::eofbit);
  EXPECT_THROW(deserialize<Value>(in, *allocator_), Error);
}

// A tensor record with a stated shape and length, and no more than `there` bytes of elements.
std::string lying_record(uint8_t dtype, const std::vector<int64_t>& dims, uint64_t length,
                         size_t there) {
  std::string bytes("NPOD\x01\x01\x0eneuropodtensor", 21);
  const auto append = [&bytes](const auto& number) {
    bytes.append(reinterpret_cast<const char*>(&number), sizeof(number));
  };
  append(length);
  append(dtype);
  append(static_cast<uint32_t>(dims.size()));
  for (const int64_t dim : dims) append(dim);
  return bytes + std::string(there, '\1');
}

TEST_F(SerializationTest, CountsThatTheStreamCannotHoldTakeNoMemory) {
  const uint64_t huge = uint64_t{1} << 40;
  for (const uint8_t dtype : {FLOAT_TENSOR, STRING_TENSOR, UINT8_TENSOR}) {
    const uint64_t bytes = dtype == FLOAT_TENSOR    ? huge * 4
                           : dtype == STRING_TENSOR ? huge * 8
                                                    : huge;
    const std::string record =
        lying_record(dtype, {static_cast<int64_t>(huge)}, 13 + bytes, size_t{3} << 20);
    EXPECT_NE(refusal(record).find("the stream ends"), std::string::npos);
    Pipe pipe(record);
    std::istream in(&pipe);
    EXPECT_THROW(deserialize<Value>(in, *allocator_), Error);
  }
  EXPECT_EQ(allocator_->stats().system_allocations, 0u);
}

TEST_F(SerializationTest, ShapesThatContradictTheLengthAreRefused) {
  EXPECT_NE(refusal(lying_record(FLOAT_TENSOR, {4}, 13 + 8, 8)).find("needs 16 bytes, but 8"),
            std::string::npos);
  EXPECT_NE(refusal(lying_record(STRING_TENSOR, {1000}, 13 + 8, 8)).find("1000 strings"),
            std::string::npos);
  EXPECT_NE(refusal(lying_record(FLOAT_TENSOR, {-1}, 13, 0)).find("negative"), std::string::npos);
  const int64_t big = int64_t{1} << 40;
  EXPECT_NE(refusal(lying_record(FLOAT_TENSOR, {big, big, 0}, 29, 0)).find("2^63"),
            std::string::npos);
  EXPECT_NE(refusal(lying_record(99, {}, 5 + 4, 4)).find("99 is no dtype"), std::string::npos);
}

TEST_F(SerializationTest, ABoolThatIsNeitherTrueNorFalseIsRefused) {
  std::string bytes = bytes_of<NeuropodValue>(*allocator_->full<uint8_t>({1}, 2));
  bytes[6 + 15 + 8] = BOOL_TENSOR;
  EXPECT_NE(refusal(bytes).find("neither 0 nor 1"), std::string::npos);
}

TEST_F(SerializationTest, UnreadableMapsAreRefused) {
  const auto tensor = allocator_->zeros<float>({});
  const std::string one = bytes_of(NeuropodValueMap{{"a", tensor}});
  const std::string entry = one.substr(6 + 8, one.size() - 6 - 8 - 4);
  std::string twice =
      one.substr(0, 6) + std::string("\2\0\0\0\0\0\0\0", 8) + entry + entry + "crc_";
  EXPECT_THROW(read<NeuropodValueMap>(twice), Error);
  std::string endless = one;
  endless[6 + 7] = '\x7f';
  EXPECT_THROW(read<NeuropodValueMap>(endless), Error);
}

TEST_F(SerializationTest, WhatCannotBeWrittenIsRefused) {
  class Far : public TypedNeuropodTensor<float> {
   public:
    Far() : TypedNeuropodTensor<float>({1}, nullptr, Device::GPU0) {}
  };
  class Opaque : public NeuropodValue {
   public:
    Opaque() : NeuropodValue(false) {}
    SET_SERIALIZE_TAG("opaque")
  };
  EXPECT_THROW(bytes_of<NeuropodValue>(Far()), Error);
  EXPECT_THROW(bytes_of<NeuropodValue>(Opaque()), Error);
  EXPECT_THROW(bytes_of(NeuropodValueMap{{"null", nullptr}}), Error);
}

TEST_F(SerializationTest, AFullDiskIsUnavailable) {
  FullDisk disk(20);
  std::ostream out(&disk);
  try {
    serialize(out, *allocator_->arange<float>(100));
    FAIL() << "it fitted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
  }
}

class Box : public NeuropodValue {
 public:
  explicit Box(std::string content) : NeuropodValue(false), content(std::move(content)) {}
  SET_SERIALIZE_TAG("box")
  void write_to(std::ostream& out) const { out << content; }
  static std::shared_ptr<Box> read_from(std::istream& in, NeuropodTensorAllocator&) {
    return std::make_shared<Box>(std::string(std::istreambuf_iterator<char>(in), {}));
  }
  const std::string content;
};

TEST_F(SerializationTest, OtherKindsOfValuesTravelWithAFormatOfTheirOwn) {
  const ValueFormats formats{MAKE_SERIALIZABLE(Box, "box")};
  std::stringstream stream;
  serialize(stream, Box("content"), formats);
  serialize(stream, NeuropodValueMap{{"b", std::make_shared<Box>("")}}, formats);
  const Value back = deserialize<Value>(stream, *allocator_, formats);
  ASSERT_STREQ(back->get_serialize_tag(), "box");
  EXPECT_EQ(static_cast<const Box&>(*back).content, "content");
  EXPECT_EQ(deserialize<NeuropodValueMap>(stream, *allocator_, formats).size(), 1u);

  std::stringstream unknown;
  serialize(unknown, Box("content"), formats);
  EXPECT_NE(refusal(unknown.str()).find("tag 'box'"), std::string::npos);
}

// Every truncation and every changed byte of `bytes` is an Error, or reads as the same.
template <typename T>
void damage(const std::string& bytes, NeuropodTensorAllocator& allocator,
            const std::function<bool(const T&)>& is_same) {
  const auto survives = [&](const std::string& damaged) {
    for (const bool as_pipe : {false, true}) {
      std::istringstream file(damaged);
      Pipe pipe(damaged);
      std::istream in(as_pipe ? static_cast<std::streambuf*>(&pipe) : file.rdbuf());
      try {
        if (!is_same(deserialize<T>(in, allocator))) return false;
      } catch (const Error&) {
      }
    }
    return true;
  };
  for (size_t length = 0; length < bytes.size(); ++length) {
    ASSERT_TRUE(survives(bytes.substr(0, length))) << "cut to " << length;
  }
  for (size_t i = 0; i < bytes.size(); ++i) {
    for (const int flip : {0x01, 0x10, 0x80, 0xff}) {
      std::string damaged = bytes;
      damaged[i] = static_cast<char>(damaged[i] ^ flip);
      ASSERT_TRUE(survives(damaged)) << "byte " << i << " ^ " << flip;
    }
  }
}

TEST_F(SerializationTest, NoDamageToATensorGoesUnseen) {
  const std::vector<Value> samples{
      allocator_->arange<float>(7),
      allocator_->full<std::string>({2, 2}, "text"),
      allocator_->full<std::string>({3}, ""),
      allocator_->full<bool>({2, 1, 3}, true),
      allocator_->full<std::complex<double>>({}, {1, 2}),
      allocator_->zeros<int64_t>({0, 3}),
  };
  for (const Value& sample : samples) {
    damage<Value>(bytes_of<NeuropodValue>(*sample), *allocator_,
                  [&](const Value& read_back) { return *read_back == *sample; });
  }
}

// CRC-32 as in zip, bit by bit.
uint32_t crc32_of(const std::string& bytes) {
  uint32_t crc = 0xffffffff;
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xedb88320 : 0);
  }
  return ~crc;
}

TEST_F(SerializationTest, AForgedChecksumLetsNothingCrash) {
  const NeuropodValueMap sample{{"numbers", allocator_->arange<float>(3)},
                                {"strings", allocator_->full<std::string>({2}, "cat")},
                                {"bools", allocator_->zeros<bool>({2})}};
  const std::string bytes = bytes_of(sample);
  for (size_t i = 0; i + 4 < bytes.size(); ++i) {
    for (int flip = 1; flip < 256; ++flip) {
      std::string forged = bytes.substr(0, bytes.size() - 4);
      forged[i] = static_cast<char>(forged[i] ^ flip);
      const uint32_t crc = crc32_of(forged);
      forged.append(reinterpret_cast<const char*>(&crc), sizeof(crc));
      try {
        for (const auto& [name, value] : read<NeuropodValueMap>(forged)) {
          std::ostringstream out;
          out << name << *value->as_tensor();
          ASSERT_FALSE(out.str().empty());
        }
      } catch (const Error& error) {
        ASSERT_EQ(error.code(), ErrorCode::kInvalidArgument) << error.message();
      }
    }
  }
}

TEST_F(SerializationTest, NoDamageToAMapGoesUnseen) {
  const NeuropodValueMap sample{{"image", allocator_->full<uint8_t>({2, 3}, 7)},
                                {"labels", allocator_->full<std::string>({2}, "cat")},
                                {"", allocator_->arange<double>(2)}};
  damage<NeuropodValueMap>(bytes_of(sample), *allocator_, [&](const NeuropodValueMap& read_back) {
    if (read_back.size() != sample.size()) return false;
    for (const auto& [name, value] : sample) {
      if (read_back.count(name) == 0 || *read_back.at(name) != *value) return false;
    }
    return true;
  });
}

}  // namespace
}  // namespace neuropod
