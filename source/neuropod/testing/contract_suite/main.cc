// Runs the suite against one backend; README.md beside this file says how.
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <set>
#include <sstream>

#include "neuropod/testing/contract_suite/contract.hh"

namespace neuropod {
namespace {

using contract::fixtures;

TEST_F(Contract, C0001_EveryLimitHasAReason) {
  for (const std::string& key : fixtures().limits()) {
    EXPECT_NE(fixtures().reason(key), "") << "'reasons' says nothing about '" << key << "'";
  }
}

struct Arguments {
  std::string fixtures;
  std::string check_docs;
  bool describe = false;
};

// Takes our own arguments; GoogleTest has taken its.
Arguments parse(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--describe") {
      arguments.describe = true;
    } else if (argument == "--out-of-process") {
      run_out_of_process();
    } else if (argument == "--fixtures" && i + 1 < argc) {
      arguments.fixtures = argv[++i];
    } else if (argument == "--check-docs" && i + 1 < argc) {
      arguments.check_docs = argv[++i];
    } else {
      throw std::runtime_error("unknown argument " + argument);
    }
  }
  if (arguments.fixtures.empty()) throw std::runtime_error("--fixtures FILE is missing");
  return arguments;
}

// Number → name of every behaviour of the program. Throws if one has two.
std::map<std::string, std::string> numbered_tests() {
  std::map<std::string, std::string> tests;
  const ::testing::TestSuite* suite = nullptr;
  for (int i = 0; i < ::testing::UnitTest::GetInstance()->total_test_suite_count(); ++i) {
    suite = ::testing::UnitTest::GetInstance()->GetTestSuite(i);
    for (int test = 0; test < suite->total_test_count(); ++test) {
      const std::string name = suite->GetTestInfo(test)->name();
      const size_t underscore = name.find('_');
      if (!tests.emplace(name.substr(0, underscore), name.substr(underscore + 1)).second) {
        throw std::runtime_error("two tests have the number " + name.substr(0, underscore));
      }
    }
  }
  return tests;
}

// "AWrongRankIsNamed" as "a wrong rank is named", the way the page writes it.
std::string in_words(const std::string& name) {
  std::string words;
  for (char letter : name) {
    if (letter >= 'A' && letter <= 'Z') {
      if (!words.empty()) words += ' ';
      letter = char(letter - 'A' + 'a');
    }
    words += letter;
  }
  return words;
}

// Rows "| C0101 | … |" and the table of capabilities. Returns the number of differences.
int check_docs(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("can't open " + path);
  std::set<std::string> documented;
  for (std::string line; std::getline(file, line);) documented.insert(line);

  int differences = 0;
  std::set<std::string> expected;
  for (const auto& [number, name] : numbered_tests()) {
    expected.insert("| " + number + " | " + in_words(name) + " |");
  }
  std::istringstream table(fixtures().describe());
  for (std::string line; std::getline(table, line);) {
    if (documented.count(line) == 0) {
      std::cerr << path << " lacks a row of the table of " << fixtures().platform() << ": " << line
                << "\n";
      ++differences;
    }
  }
  for (const std::string& line : expected) {
    if (documented.count(line) != 0) continue;
    std::cerr << path << " lacks: " << line << "\n";
    ++differences;
  }
  for (const std::string& line : documented) {
    if (line.rfind("| C", 0) != 0 || expected.count(line) != 0) continue;
    std::cerr << path << " lists what the suite lacks: " << line << "\n";
    ++differences;
  }
  return differences;
}

int run(int argc, char** argv) {
  ::testing::InitGoogleMock(&argc, argv);
  const Arguments arguments = parse(argc, argv);
  const contract::Fixtures read(arguments.fixtures);
  contract::set_fixtures(&read);
  if (arguments.describe) {
    std::cout << read.describe();
    return EXIT_SUCCESS;
  }
  if (!arguments.check_docs.empty()) {
    return check_docs(arguments.check_docs) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
  }
  watch_for_undeclared_skips();
  return RUN_ALL_TESTS();
}

}  // namespace
}  // namespace neuropod

int main(int argc, char** argv) {
  try {
    return neuropod::run(argc, argv);
  } catch (const std::exception& exception) {
    std::cerr << argv[0] << ": " << exception.what() << "\n";
    return EXIT_FAILURE;
  }
}
