// Files byte for byte, and every way of damaging one: each byte flipped, each length cut.
#include "src/checkpoint/safetensors.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "tests/checkpoint/checkpoint_support.h"

namespace simclr {
namespace {

using testing::HasSubstr;

// Two tensors whose file is written out below.
struct TwoTensors {
  float weight[2] = {1.0F, -2.0F};
  uint8_t bytes[3] = {1, 2, 3};
  std::vector<NamedTensor> views = {{"weight", TensorType::kFloat32, {2}, weight},
                                    {"n", TensorType::kUint8, {3}, bytes}};
};

void write_two(const std::filesystem::path& path) {
  write_safetensors(path, {{"a", "b"}}, TwoTensors{}.views);
}

void open_and_verify(const std::filesystem::path& path) {
  SafetensorsFile(path).verify_checksum();
}

TEST(Safetensors, WritesTheBytesMadeByHand) {
  TemporaryFolder folder;
  write_two(folder.path() / "f");
  // 221 bytes of JSON and 3 spaces: 224 = 0xE0. The checksum is Python's hashlib over the same bytes with 64 zeros.
  const std::string expected =
      std::string("\xE0\0\0\0\0\0\0\0", 8) +
      R"({"__metadata__":{"a":"b","content_sha256":"a822b090ddc68580bce2e2cd0dce2a39bd9fbb14e913f6a2883321cd58cd30de"},)"
      R"("weight":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"n":{"dtype":"U8","shape":[3],"data_offsets":[8,11]}})"
      "   " +
      std::string("\0\0\x80\x3F\0\0\0\xC0\1\2\3", 11);
  EXPECT_EQ(read_file(folder.path() / "f"), expected);
  open_and_verify(folder.path() / "f");
}

TEST(Safetensors, ReadsBackEveryBitPattern) {
  TemporaryFolder folder;
  std::vector<uint32_t> floats = {0x7FC12345, 0xFF800001, 0x00000001, 0x80000000, 0x7F800000, 0x3F800001};
  std::vector<double> doubles = {std::numeric_limits<double>::denorm_min(), -0.0, 1.0 / 3};
  std::vector<int64_t> ints = {std::numeric_limits<int64_t>::min(), -1};
  uint8_t scalar = 255;
  const std::vector<NamedTensor> tensors = {{"f", TensorType::kFloat32, {3, 2}, floats.data()},
                                            {"s", TensorType::kUint8, {}, &scalar},
                                            {"d", TensorType::kFloat64, {3, 1}, doubles.data()},
                                            {"none", TensorType::kFloat32, {0, 7}, nullptr},
                                            {"i", TensorType::kInt64, {2}, ints.data()}};
  write_safetensors(folder.path() / "f", {{"text", "ein \"Wort\"\n\xE2\x82\xAC"}}, tensors);
  const SafetensorsFile file(folder.path() / "f");
  file.verify_checksum();
  EXPECT_EQ(file.metadata().at("text"), "ein \"Wort\"\n\xE2\x82\xAC");
  ASSERT_EQ(file.entries().size(), tensors.size());
  for (const NamedTensor& tensor : tensors) {
    const SafetensorsEntry* entry = file.find(tensor.name);
    ASSERT_NE(entry, nullptr) << tensor.name;
    EXPECT_EQ(entry->type, tensor.type);
    EXPECT_EQ(entry->shape, tensor.shape);
    std::vector<char> read(tensor.bytes(), 'x');
    file.read(*entry, read.data());
    EXPECT_TRUE(read.empty() || std::memcmp(read.data(), tensor.data, read.size()) == 0) << tensor.name;
  }
  EXPECT_EQ(file.find("missing"), nullptr);
}

TEST(Safetensors, PiecesAreTheWhole) {
  TemporaryFolder folder;
  std::vector<float> values(700001);  // 2.67 MiB
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  float before = 7;
  write_safetensors(folder.path() / "f", {},
                    std::vector<NamedTensor>{{"before", TensorType::kFloat32, {}, &before},
                                             {"v", TensorType::kFloat32, {700001}, values.data()}});
  const SafetensorsFile file(folder.path() / "f");
  file.verify_checksum();
  std::string joined;
  int pieces = 0;
  file.read_in_pieces(*file.find("v"), [&](const char* data, size_t bytes) {
    joined.append(data, bytes);
    ++pieces;
  });
  EXPECT_EQ(pieces, 3);
  ASSERT_EQ(joined.size(), values.size() * 4);
  EXPECT_EQ(std::memcmp(joined.data(), values.data(), joined.size()), 0);
}

TEST(Safetensors, FindsEveryFlippedBit) {
  TemporaryFolder folder;
  write_two(folder.path() / "good");
  const std::string good = read_file(folder.path() / "good");
  for (size_t at = 0; at < good.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = good;
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << bit));
      write_file(folder.path() / "damaged", damaged);
      const std::string text = error_text([&] { open_and_verify(folder.path() / "damaged"); });
      ASSERT_THAT(text, HasSubstr("cannot read " + (folder.path() / "damaged").string() + ": ")) << "byte " << at;
    }
  }
}

TEST(Safetensors, FindsEveryCutAndEveryAddedByte) {
  TemporaryFolder folder;
  write_two(folder.path() / "good");
  const std::string good = read_file(folder.path() / "good");
  for (size_t length = 0; length < good.size(); ++length) {
    write_file(folder.path() / "cut", good.substr(0, length));
    ASSERT_NE(error_text([&] { open_and_verify(folder.path() / "cut"); }), "") << length;
  }
  write_file(folder.path() / "long", good + "x");
  EXPECT_THAT(error_text([&] { open_and_verify(folder.path() / "long"); }),
              HasSubstr("take 11 bytes of data, the file has 12"));
}

TEST(Safetensors, NamesTheCause) {
  TemporaryFolder folder;
  const auto cause_of = [&](const std::string& bytes) {
    write_file(folder.path() / "f", bytes);
    return error_text([&] { open_and_verify(folder.path() / "f"); });
  };
  write_two(folder.path() / "good");
  const std::string good = read_file(folder.path() / "good");
  EXPECT_THAT(cause_of(""), HasSubstr(": it is empty"));
  EXPECT_THAT(cause_of("1234567"), HasSubstr("only 7 bytes: cut off"));
  EXPECT_THAT(cause_of(std::string(100, '\xFF')), HasSubstr("header claims 18446744073709551615 bytes"));
  EXPECT_THAT(cause_of(std::string("\x01\0\0\x01\0\0\0\0", 8)),
              HasSubstr("header claims 16777217 bytes: not a safetensors"));
  EXPECT_THAT(cause_of(good.substr(0, 100)), HasSubstr("header claims 224 bytes, the file has 100"));
  EXPECT_THAT(cause_of("PNG is another format, as can be seen"), HasSubstr("not a safetensors file"));
  EXPECT_THAT(cause_of(good.substr(0, good.size() - 1) + '\4'), HasSubstr("does not match its checksum"));
  EXPECT_THAT(cause_of(std::string("\x08\0\0\0\0\0\0\0{}      ", 16)), HasSubstr("no content checksum"));
  EXPECT_THAT(error_text([&] { open_and_verify(folder.path()); }), HasSubstr("it is a folder"));
  EXPECT_THAT(error_text([&] { open_and_verify(folder.path() / "missing"); }), HasSubstr("No such file"));
  ASSERT_EQ(mkfifo((folder.path() / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(error_text([&] { open_and_verify(folder.path() / "pipe"); }),
              HasSubstr("not a regular file"));  // and no waiting
  EXPECT_THAT(error_text([&] { open_and_verify("/dev/null"); }), HasSubstr("not a regular file"));
}

TEST(Safetensors, TheChecksumFieldCannotBeImitated) {
  TemporaryFolder folder;
  float value = 1;
  const std::string zeros(64, '0');
  // As a text inside another text, and as the name of a tensor.
  write_safetensors(folder.path() / "f", {{"config", "\"content_sha256\":\"" + zeros + "\""}},
                    std::vector<NamedTensor>{{"content_sha256", TensorType::kFloat32, {}, &value}});
  open_and_verify(folder.path() / "f");
}

TEST(Safetensors, RefusesToWriteWhatItCouldNotRead) {
  TemporaryFolder folder;
  float value = 1;
  const auto write = [&](const std::string& name, const std::string& text) {
    write_safetensors(folder.path() / "f", {{"k", text}},
                      std::vector<NamedTensor>{{name, TensorType::kFloat32, {}, &value}});
  };
  EXPECT_THAT(error_text([&] { write("a", "\xFF"); }),
              HasSubstr((folder.path() / "f").string() + ": a name or a text"));
  EXPECT_THAT(error_text([&] { write("a\n", ""); }), HasSubstr("control characters"));
  EXPECT_THAT(error_text([&] { write("a", std::string(size_t{17} << 20, 'x')); }), HasSubstr("bytes, the limit is"));
  const std::vector<NamedTensor> twice(2, {"a", TensorType::kFloat32, {}, &value});
  EXPECT_THAT(error_text([&] { write_safetensors(folder.path() / "f", {}, twice); }, ExitCode::kOther),
              HasSubstr("'a'"));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(Safetensors, AFullDiskLeavesTheEarlierFile) {
  TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "f";
  write_two(path);
  const std::string good = read_file(path);
  for (rlim_t limit = 0; limit < good.size(); limit += 13) {
    const FileSizeLimit full(limit);
    EXPECT_THAT(error_text([&] { write_two(path); }), HasSubstr(path.string() + ": File too large")) << limit;
    EXPECT_EQ(read_file(path), good);
  }
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1) << "no temporary file is left";
}

TEST(Safetensors, RefusesPathsThatCannotBeAFile) {
  TemporaryFolder folder;
  write_file(folder.path() / "plain", "x");
  ASSERT_EQ(mkfifo((folder.path() / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(error_text([&] { write_two(folder.path() / "plain/f"); }), HasSubstr("plain/f: Not a directory"));
  EXPECT_THAT(error_text([&] { write_two(folder.path() / "none/f"); }), HasSubstr("none/f: No such file or directory"));
  for (const std::filesystem::path& path :
       {folder.path(), folder.path() / "pipe", std::filesystem::path("/dev/full")}) {
    EXPECT_THAT(error_text([&] { write_two(path); }), HasSubstr(path.string() + ": it is not a regular file"));
  }
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 2) << "nothing was left behind";
}

TEST(Safetensors, AReadOnlyFolderIsNamed) {
  if (geteuid() == 0) GTEST_SKIP() << "root writes into read-only folders";
  TemporaryFolder folder;
  std::filesystem::permissions(folder.path(), std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec);
  EXPECT_THAT(error_text([&] { write_two(folder.path() / "f"); }), HasSubstr("Permission denied"));
  std::filesystem::permissions(folder.path(), std::filesystem::perms::owner_all);
}

// What a reader that has the file open sees does not change when another process puts a new file in its place.
TEST(Safetensors, AnOpenFileStaysTheSame) {
  TemporaryFolder folder;
  float value = 1;
  const std::vector<NamedTensor> tensors = {{"a", TensorType::kFloat32, {}, &value}};
  write_safetensors(folder.path() / "f", {}, tensors);
  const SafetensorsFile file(folder.path() / "f");
  value = 2;
  write_safetensors(folder.path() / "f", {}, tensors);
  file.verify_checksum();
  float read = 0;
  file.read(*file.find("a"), &read);
  EXPECT_EQ(read, 1.0F);
}

}  // namespace
}  // namespace simclr
