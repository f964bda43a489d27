#include "neuropod/base/ed25519.hh"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <functional>

#include "neuropod/base/error.hh"
#include "neuropod/base/pem.hh"
#include "neuropod/base/temporary_folder.hh"

namespace neuropod {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string bytes_of_hex(const std::string& hex) {
  std::string bytes;
  for (size_t i = 0; i < hex.size(); i += 2) {
    bytes.push_back(static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

// RFC 8032, section 7.1, tests 1 and 3.
const char kSecret1[] = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60";
const char kPublic1[] = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";
const char kSignature1[] =
    "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b4"
    "6bd25bf5f0595bbe24655141438e7a100b";
const char kSecret3[] = "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7";
const char kSignature3[] =
    "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6"
    "594a7c15e9716ed28dc027beceea1ec40a";

class Ed25519Test : public ::testing::Test {
 protected:
  std::string file(const std::string& content) {
    const std::string path = folder_.path() + "/key" + std::to_string(++files_) + ".pem";
    std::ofstream(path) << content;
    return path;
  }

  std::string private_file(const std::string& secret_hex) {
    return file(
        write_pem("PRIVATE KEY", bytes_of_hex("302e020100300506032b657004220420" + secret_hex)));
  }

  static std::string why_refused(const std::function<void()>& read) {
    try {
      read();
    } catch (const Error& error) {
      return std::string(to_string(error.code())) + ": " + error.message();
    }
    return "read";
  }

  std::string public_refusal(const std::string& content) {
    const std::string path = file(content);
    return why_refused([&] { Ed25519PublicKey::read(path); });
  }

  std::string private_refusal(const std::string& content) {
    const std::string path = file(content);
    return why_refused([&] { Ed25519PrivateKey::read(path); });
  }

  const TemporaryFolder folder_;
  int files_ = 0;
};

TEST_F(Ed25519Test, SignsAsTheStandardSays) {
  const Ed25519PrivateKey first = Ed25519PrivateKey::read(private_file(kSecret1));
  EXPECT_EQ(first.sign(""), bytes_of_hex(kSignature1));
  EXPECT_TRUE(Ed25519PublicKey(bytes_of_hex(kPublic1)).verify("", bytes_of_hex(kSignature1)));
  EXPECT_EQ(first.public_key().id(), Ed25519PublicKey(bytes_of_hex(kPublic1)).id());
  const Ed25519PrivateKey third = Ed25519PrivateKey::read(private_file(kSecret3));
  EXPECT_EQ(third.sign("\xaf\x82"), bytes_of_hex(kSignature3));
}

TEST_F(Ed25519Test, RefusesEverySignatureThatDiffersByABit) {
  const Ed25519PrivateKey key = Ed25519PrivateKey::generate();
  const Ed25519PublicKey public_key = key.public_key();
  const std::string signature = key.sign("message");
  EXPECT_TRUE(public_key.verify("message", signature));
  for (size_t bit = 0; bit < signature.size() * 8; ++bit) {
    std::string other = signature;
    other[bit / 8] = static_cast<char>(other[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_FALSE(public_key.verify("message", other)) << bit;
  }
  EXPECT_FALSE(public_key.verify("massage", signature));
  EXPECT_FALSE(public_key.verify("message", signature.substr(1)));
  EXPECT_FALSE(public_key.verify("message", ""));
  EXPECT_FALSE(Ed25519PrivateKey::generate().public_key().verify("message", signature));
}

TEST_F(Ed25519Test, KeysSurviveTheirFiles) {
  const Ed25519PrivateKey key = Ed25519PrivateKey::generate();
  const Ed25519PrivateKey again = Ed25519PrivateKey::read(file(key.to_pem()));
  EXPECT_EQ(again.sign("m"), key.sign("m"));
  const std::string text = "a comment before\r\n" + key.public_key().to_pem() + "\nand behind\n";
  EXPECT_EQ(Ed25519PublicKey::read(file(text)).id(), key.public_key().id());
}

TEST_F(Ed25519Test, ReadsPrivateKeysThatCarryTheirPublicKey) {
  const Ed25519PrivateKey key = Ed25519PrivateKey::read(
      file(write_pem("PRIVATE KEY", bytes_of_hex(std::string("3051020101300506032b657004220420") +
                                                 kSecret1 + "812100" + kPublic1))));
  EXPECT_EQ(key.sign(""), bytes_of_hex(kSignature1));
}

TEST_F(Ed25519Test, TheWrongHalfOfAPairIsNamed) {
  const Ed25519PrivateKey key = Ed25519PrivateKey::generate();
  EXPECT_THAT(public_refusal(key.to_pem()),
              AllOf(HasSubstr("invalid_argument"), HasSubstr("/key1.pem' holds a private key"),
                    HasSubstr("openssl pkey -pubout")));
  EXPECT_THAT(private_refusal(key.public_key().to_pem()),
              AllOf(HasSubstr("invalid_argument"), HasSubstr("holds a public key")));
}

TEST_F(Ed25519Test, KeysForOtherAlgorithmsAreNamed) {
  const std::string rsa = bytes_of_hex("305c300d06092a864886f70d0101010500034b00") + "0123456789";
  EXPECT_THAT(public_refusal(write_pem("PUBLIC KEY", rsa)),
              AllOf(HasSubstr("holds a key for RSA, expected a public key for Ed25519"),
                    HasSubstr("neuropod keygen")));
  const std::string curve = bytes_of_hex("3041020100301306072a8648ce3d0201") + "0123456789";
  EXPECT_THAT(private_refusal(write_pem("PRIVATE KEY", curve)), HasSubstr("elliptic curve"));
  EXPECT_THAT(private_refusal(write_pem("RSA PRIVATE KEY", "0123")),
              HasSubstr("holds 'RSA PRIVATE KEY'"));
  EXPECT_THAT(public_refusal(write_pem("CERTIFICATE", "0123")), HasSubstr("holds 'CERTIFICATE'"));
  EXPECT_THAT(public_refusal(write_pem("PUBLIC KEY", "short")), HasSubstr("damaged key"));
}

TEST_F(Ed25519Test, EncryptedKeysAreRefusedWithTheRemedy) {
  EXPECT_THAT(private_refusal(write_pem("ENCRYPTED PRIVATE KEY", "0123")),
              AllOf(HasSubstr("encrypted with a passphrase"), HasSubstr("openssl pkey -in")));
  EXPECT_THAT(private_refusal("-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n"
                              "DEK-Info: AES-128-CBC,00\n\nAAAA\n-----END RSA PRIVATE KEY-----\n"),
              HasSubstr("encrypted with a passphrase"));
  EXPECT_THAT(private_refusal(write_pem("OPENSSH PRIVATE KEY", "0123")), HasSubstr("OpenSSH"));
}

TEST_F(Ed25519Test, FilesThatHoldNoKeyAreRefused) {
  const std::string pem = Ed25519PrivateKey::generate().public_key().to_pem();
  EXPECT_THAT(public_refusal(""), HasSubstr("holds no key in PEM"));
  EXPECT_THAT(public_refusal("ssh-ed25519 AAAA me"), HasSubstr("holds no key in PEM"));
  EXPECT_THAT(public_refusal(pem.substr(0, 60)), HasSubstr("is cut off"));
  EXPECT_THAT(public_refusal(pem + pem), HasSubstr("more than one key"));
  EXPECT_THAT(public_refusal(std::string(100000, 'x')), HasSubstr("100000 bytes"));
  std::string damaged = pem;
  damaged[40] = '!';
  EXPECT_THAT(public_refusal(damaged), HasSubstr("damaged key"));
  EXPECT_THAT(why_refused([&] { Ed25519PublicKey::read(folder_.path() + "/none.pem"); }),
              AllOf(HasSubstr("not_found"), HasSubstr("/none.pem")));
  EXPECT_THAT(why_refused([&] { Ed25519PublicKey::read(folder_.path()); }),
              HasSubstr("is a directory"));
}

TEST(Base64Test, TakesOnlyWhatItWrites) {
  for (const std::string text : {"a", "ab", "abc", "abcd"}) {
    std::string back;
    EXPECT_TRUE(from_base64(to_base64(text), &back));
    EXPECT_EQ(back, text);
  }
  std::string ignored;
  EXPECT_TRUE(from_base64("YQ==", &ignored));
  for (const char* other : {"", "YQ", "YQ=", "YR==", " YQ==", "YQ==\n", "Y===", "====", "Y$=="}) {
    EXPECT_FALSE(from_base64(other, &ignored)) << other;
  }
}

}  // namespace
}  // namespace neuropod
