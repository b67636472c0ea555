#include "src/metrics/event_record.h"

#include <array>
#include <bit>

#include "kernels/common/numbers.h"

namespace simclr {
namespace {

constexpr std::array<uint32_t, 256> make_crc_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82F63B78U : 0U);
    table[byte] = crc;
  }
  return table;
}
constexpr std::array<uint32_t, 256> kCrcTable = make_crc_table();

uint32_t masked_crc(std::string_view bytes) {
  const uint32_t crc = crc32c(bytes);
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8U;
}

template <typename T>
std::string little_endian(T value) {
  std::string bytes;
  for (size_t i = 0; i < sizeof value; ++i) bytes += static_cast<char>(value >> (8 * i) & 0xff);
  return bytes;
}

// A message under construction (protobuf.dev, "Encoding"): each field is its key, number * 8 + wire type, and its
// value.
class Message {
 public:
  Message& integer(uint32_t field, uint64_t value) {
    key(field, 0);
    varint(value);
    return *this;
  }
  Message& real64(uint32_t field, double value) {
    key(field, 1);
    bytes_ += little_endian(std::bit_cast<uint64_t>(value));
    return *this;
  }
  Message& real32(uint32_t field, float value) {
    key(field, 5);
    bytes_ += little_endian(std::bit_cast<uint32_t>(value));
    return *this;
  }
  Message& text(uint32_t field, std::string_view value) {  // string, bytes
    key(field, 2);
    varint(value.size());
    bytes_ += value;
    return *this;
  }
  Message& part(uint32_t field, const Message& value) { return text(field, value.bytes_); }
  const std::string& bytes() const { return bytes_; }

 private:
  void key(uint32_t field, uint32_t wire_type) { varint(field << 3 | wire_type); }
  void varint(uint64_t value) {
    for (; value >= 128; value >>= 7) bytes_ += static_cast<char>((value & 127) | 128);
    bytes_ += static_cast<char>(value);
  }
  std::string bytes_;
};

// Event: wall_time = 1, step = 2, file_version = 3, summary = 5, session_log = 7
Message begin_event(const EventHead& e) {
  Message event;
  event.real64(1, e.wall_time_s).integer(2, e.step);
  return event;
}

// Summary: value = 1. Summary.Value: tag = 1, simple_value = 2, image = 4, tensor = 8, metadata = 9
Message value_of(const std::string& tag) {
  Message value;
  value.text(1, tag);
  return value;
}

std::string event_of(const EventHead& e, const Message& summary) {
  return begin_event(e).part(5, summary).bytes();
}

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  uint32_t crc = 0xffffffffU;
  for (const char c : bytes) crc = kCrcTable[(crc ^ static_cast<uint8_t>(c)) & 0xff] ^ (crc >> 8);
  return ~crc;
}

std::string frame_record(std::string_view bytes) {
  const std::string length = little_endian(uint64_t{bytes.size()});
  std::string record = length + little_endian(masked_crc(length));
  record += bytes;
  return record + little_endian(masked_crc(bytes));
}

std::string version_event(double wall_time_s) {
  return Message().real64(1, wall_time_s).text(3, "brain.Event:2").bytes();
}

std::string session_start_event(const EventHead& e) {
  return begin_event(e).part(7, Message().integer(1, 1)).bytes();  // SessionLog: status = 1, START = 1
}

std::string scalars_event(const EventHead& e, const std::vector<std::pair<std::string, double>>& scalars) {
  Message summary;
  for (const auto& [tag, number] : scalars) summary.part(1, value_of(tag).real32(2, to_float(number)));
  return event_of(e, summary);
}

std::string image_event(const EventHead& e, const std::string& tag, const EncodedImage& image) {
  // Summary.Image: height = 1, width = 2, colorspace = 3 (3: RGB), encoded_image_string = 4
  const Message summary = Message().integer(1, image.height).integer(2, image.width).integer(3, 3).text(4, image.png);
  return event_of(e, Message().part(1, value_of(tag).part(4, summary)));
}

std::string text_event(const EventHead& e, const std::string& tag, const std::string& markdown) {
  // SummaryMetadata: plugin_data = 1 {plugin_name = 1}. TensorProto: dtype = 1 (DT_STRING: 7), tensor_shape = 2
  // (TensorShapeProto: dim = 2 {size = 1}), string_val = 8. The text plugin takes a tensor of rank 1.
  const Message metadata = Message().part(1, Message().text(1, "text"));
  const Message shape = Message().part(2, Message().integer(1, 1));
  const Message tensor = Message().integer(1, 7).part(2, shape).text(8, markdown);
  return event_of(e, Message().part(1, value_of(tag).part(8, tensor).part(9, metadata)));
}

}  // namespace simclr
