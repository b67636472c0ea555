// Reads event files by TensorFlow's specification, apart from what writes them: framing with its checksums (bit by bit,
// no table) and protocol-buffer messages as a map from field number to values.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace simclr {

// A message: for each field its values as they stand: varint, eight or four bytes as a number, or bytes.
struct ReadMessage {
  std::map<uint32_t, std::vector<uint64_t>> numbers;
  std::map<uint32_t, std::vector<std::string>> texts;

  std::string text(uint32_t field) const { return texts.count(field) != 0 ? texts.at(field).at(0) : ""; }
  uint64_t number(uint32_t field) const { return numbers.count(field) != 0 ? numbers.at(field).at(0) : 0; }
  ReadMessage part(uint32_t field, size_t i = 0) const { return parse(texts.at(field).at(i)); }
  double real64(uint32_t field) const { return as<double>(number(field)); }
  float real32(uint32_t field) const { return as<float>(static_cast<uint32_t>(number(field))); }

  static ReadMessage parse(std::string_view bytes) {
    ReadMessage message;
    size_t at = 0;
    const auto varint = [&] {
      uint64_t value = 0;
      for (int shift = 0; at < bytes.size(); shift += 7) {
        const auto byte = static_cast<uint8_t>(bytes[at++]);
        value |= static_cast<uint64_t>(byte & 127) << shift;
        if (byte < 128) break;
      }
      return value;
    };
    const auto fixed = [&](size_t size) {
      uint64_t value = 0;
      for (size_t i = 0; i < size; ++i) value |= static_cast<uint64_t>(static_cast<uint8_t>(bytes[at++])) << (8 * i);
      return value;
    };
    while (at < bytes.size()) {
      const uint64_t key = varint();
      const auto field = static_cast<uint32_t>(key >> 3);
      switch (key & 7) {
        case 0:
          message.numbers[field].push_back(varint());
          break;
        case 1:
          message.numbers[field].push_back(fixed(8));
          break;
        case 5:
          message.numbers[field].push_back(fixed(4));
          break;
        default: {
          EXPECT_EQ(key & 7, 2U);
          const uint64_t size = varint();
          EXPECT_LE(size, bytes.size() - at);
          message.texts[field].emplace_back(bytes.substr(at, size));
          at += size;
        }
      }
    }
    return message;
  }

 private:
  template <typename T, typename Bits>
  static T as(Bits bits) {
    static_assert(sizeof(T) == sizeof(Bits));
    T value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
  }
};

inline uint32_t slow_masked_crc(std::string_view bytes) {
  uint32_t crc = ~0U;
  for (const char c : bytes) {
    crc ^= static_cast<uint8_t>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc & 1) != 0 ? crc >> 1 ^ 0x82F63B78U : crc >> 1;
  }
  crc = ~crc;
  return (crc >> 15 | crc << 17) + 0xa282ead8U;
}

// The events of a file; fails the test where the framing is wrong.
inline std::vector<ReadMessage> read_events(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string all{std::istreambuf_iterator<char>(file), {}};
  const auto number = [&](size_t at, size_t size) {
    uint64_t value = 0;
    for (size_t i = 0; i < size; ++i) value |= static_cast<uint64_t>(static_cast<uint8_t>(all.at(at + i))) << (8 * i);
    return value;
  };
  std::vector<ReadMessage> events;
  for (size_t at = 0; at < all.size();) {
    const uint64_t size = number(at, 8);
    EXPECT_EQ(number(at + 8, 4), slow_masked_crc(std::string_view(all).substr(at, 8)));
    const std::string_view body = std::string_view(all).substr(at + 12, size);
    EXPECT_EQ(number(at + 12 + size, 4), slow_masked_crc(body));
    events.push_back(ReadMessage::parse(body));
    at += 16 + size;
  }
  return events;
}

}  // namespace simclr
