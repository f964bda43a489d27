#include "neuropod/multiprocess/channel/call_message.hh"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "neuropod/multiprocess/serialization/ipc_serialization.hh"
#include "neuropod/testing/error_of.hh"

namespace neuropod::multiprocess {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Reads all of a body; what it returns must lie inside it.
void read_all(const std::string& body) {
  BodyReader reader(body);
  TensorRecord record;
  const char* begin = body.data();
  const char* end = begin + body.size();
  while (reader.next(&record)) {
    if (record.content != nullptr) {
      const auto* content = static_cast<const char*>(record.content);
      ASSERT_TRUE(content >= begin && record.bytes <= size_t(end - content));
      if (record.type == STRING_TENSOR) {
        uint64_t count = 1;
        for (const int64_t dim : record.dims) count *= uint64_t(dim);
        for (const std::string_view text : read_string_content(content, record.bytes, count)) {
          ASSERT_TRUE(text.data() >= begin && text.data() + text.size() <= end);
        }
      }
    }
    ASSERT_TRUE(record.named.empty() ||
                (record.named.data() >= begin && record.named.data() + record.named.size() <= end));
  }
  reader.kept_inputs();
}

void read_hostile(const std::string& body) {
  try {
    read_all(body);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  }
}

std::string reply_of_all_kinds() {
  BodyWriter writer;
  writer.begin_reply();
  writer.add(0, {}, DOUBLE_TENSOR, {2, 3}, Place::kOutputArena, 4096, 48, 4096);
  std::memcpy(writer.add_inline(1, {}, INT32_TENSOR, {2}, 8), "12345678", 8);
  const std::vector<std::string_view> strings{"a", "", "bcd"};
  write_string_content(strings, writer.add_inline(kNamed, "extra", STRING_TENSOR, {3},
                                                  string_content_bytes(strings)));
  writer.add(2, {}, FLOAT_TENSOR, {}, Place::kInputArena, 64, 4, 0);
  writer.add_kept(1, 77);
  return std::string(writer.finish());
}

TEST(CallMessageTest, ARequestComesBackAsItWas) {
  BodyWriter writer;
  writer.begin_request({3, 1});
#define NEUROPOD_ADD(enumerator, value, name, cpp_type) \
  writer.add(value, {}, enumerator, {2, 0, 5}, Place::kInputArena, 128 * value, 0, 0);
  NEUROPOD_FOR_EACH_NUMERIC_DTYPE(NEUROPOD_ADD)
#undef NEUROPOD_ADD
  const std::string body(writer.finish());
  BodyReader reader(body);
  EXPECT_THAT(reader.requested_outputs(), ElementsAre(3, 1));
  TensorRecord record;
  size_t count = 0;
  for (; reader.next(&record); ++count) {
    EXPECT_EQ(record.name, uint32_t(record.type));
    EXPECT_EQ(record.offset, 128u * record.name);
    EXPECT_THAT(record.dims, ElementsAre(2, 0, 5));
  }
  EXPECT_EQ(count, reader.num_tensors());
  EXPECT_GE(count, 13u);
}

TEST(CallMessageTest, AReplyComesBackAsItWas) {
  const std::string body = reply_of_all_kinds();
  BodyReader reader(body);
  TensorRecord record;
  ASSERT_TRUE(reader.next(&record));
  EXPECT_EQ(record.block, 4096u);
  ASSERT_TRUE(reader.next(&record));
  EXPECT_EQ(std::memcmp(record.content, "12345678", 8), 0);
  ASSERT_TRUE(reader.next(&record));
  EXPECT_EQ(record.named, "extra");
  EXPECT_THAT(read_string_content(record.content, record.bytes, 3), ElementsAre("a", "", "bcd"));
  ASSERT_TRUE(reader.next(&record));
  EXPECT_TRUE(record.dims.empty());
  EXPECT_FALSE(reader.next(&record));
  const auto kept = reader.kept_inputs();
  ASSERT_EQ(kept.size(), 1u);
  EXPECT_EQ(kept[0].record, 1u);
  EXPECT_EQ(kept[0].token, 77u);
}

TEST(CallMessageTest, AnErrorComesBackAsItWas) {
  BodyWriter writer;
  writer.write_error(ErrorCode::kModelError, "the model raised");
  const std::string body(writer.finish());
  const BodyReader reader(body);
  EXPECT_TRUE(reader.is_error());
  EXPECT_EQ(reader.error_code(), ErrorCode::kModelError);
  EXPECT_EQ(reader.error_message(), "the model raised");
}

TEST(CallMessageTest, ABodyCutAnywhereIsRefusedOrWhole) {
  const std::string body = reply_of_all_kinds();
  for (size_t size = 0; size < body.size(); ++size) read_hostile(body.substr(0, size));
}

TEST(CallMessageTest, ABodyWithAnyByteChangedIsReadInsideItsBounds) {
  const std::string body = reply_of_all_kinds();
  for (size_t i = 0; i < body.size(); ++i) {
    for (const int change : {1, 0x7f, 0x80, 0xff}) {
      std::string changed = body;
      changed[i] = static_cast<char>(changed[i] ^ change);
      read_hostile(changed);
    }
  }
}

TEST(CallMessageTest, RandomBodiesAreReadInsideTheirBounds) {
  std::mt19937 random(1);
  const std::string body = reply_of_all_kinds();
  for (int round = 0; round < 200'000; ++round) {
    std::string changed = body;
    for (unsigned i = 0; i < random() % 8 + 1; ++i) {
      const size_t at = random() % (changed.size() / 4) * 4;
      const uint32_t value = random() % 3 == 0 ? random() : random() % 100;
      std::memcpy(changed.data() + at, &value, 4);
    }
    read_hostile(changed);
  }
}

TEST(IpcSerializationTest, ALoadRequestComesBackAsItWas) {
  LoadRequest request;
  request.version = "1.2.3";
  request.abi = "9";
  request.path = "/models/\xff\x01 name";
  request.overrides = {{"echo", "1.0.0", "/p"}};
  request.options.strict = true;
  request.options.require_signature = {"/key\x80"};
  request.options.ope_options.concurrency = 3;
  request.module_folders = {{"m", "/site"}};
  const auto back = std::get<LoadRequest>(deserialize(serialize(request)));
  EXPECT_EQ(back.path, request.path);
  EXPECT_EQ(back.overrides, request.overrides);
  EXPECT_TRUE(back.options.strict);
  EXPECT_EQ(back.options.require_signature, request.options.require_signature);
  EXPECT_EQ(back.options.ope_options.concurrency, 3);
  EXPECT_EQ(back.module_folders, request.module_folders);
}

TEST(IpcSerializationTest, ARequestOfAnotherProtocolTellsItsVersionsOnly) {
  const auto request = std::get<LoadRequest>(
      deserialize(R"({"type": "load", "protocol": 99, "version": "7", "abi": "8", "new": []})"));
  EXPECT_EQ(request.protocol, 99u);
  EXPECT_EQ(request.version, "7");
}

TEST(IpcSerializationTest, WhatIsNoMessageIsRefusedWithItsBeginning) {
  for (const char* text :
       {"", "{", "[]", "null", R"({"type": 3})", R"({"type": "dance"})", R"({"type": "load"})",
        R"({"type": "failed", "code": "x"})", "\xff\xfe"}) {
    EXPECT_EQ(error_of([&] { deserialize(text); }).code(), ErrorCode::kInvalidArgument) << text;
  }
}

TEST(IpcSerializationTest, ChangedMessagesAreRefusedOrMessages) {
  LoadRequest request;
  request.path = "/p";
  const std::string text = serialize(request);
  std::mt19937 random(3);
  for (int round = 0; round < 20'000; ++round) {
    std::string changed = text;
    for (unsigned i = 0; i < random() % 4 + 1; ++i)
      changed[random() % changed.size()] = char(random());
    try {
      deserialize(changed);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    }
  }
}

}  // namespace
}  // namespace neuropod::multiprocess
