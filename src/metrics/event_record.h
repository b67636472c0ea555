// The framing of TensorBoard's event files and the few messages inside it, as bytes. Field numbers are those of
// tensorflow/core/util/event.proto and tensorflow/core/framework/{summary,tensor,tensor_shape,types}.proto; the framing
// is that of tensorflow/core/lib/io/record_writer.h. No general protocol-buffer library: what is written is this much.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace simclr {

// CRC-32C (Castagnoli, RFC 3720 appendix B.4): 0xE3069283 for "123456789".
uint32_t crc32c(std::string_view bytes);

// u64 length, u32 masked crc of the length, the bytes, u32 masked crc of the bytes; little endian. A crc is masked as
// ((crc >> 15) | (crc << 17)) + 0xa282ead8, since data that hold crc themselves would otherwise look too much like one.
std::string frame_record(std::string_view bytes);

// What of an Event message (event.proto) there is to say; each function returns the message without framing.
struct EventHead {
  double wall_time_s = 0;  // since 1970
  int64_t step = 0;
};
std::string version_event(double wall_time_s);        // the first of each file: file_version "brain.Event:2"
std::string session_start_event(const EventHead& e);  // what has this step or a later one in earlier files is void
std::string scalars_event(const EventHead& e, const std::vector<std::pair<std::string, double>>& scalars);

struct EncodedImage {
  std::string png;
  int64_t height = 0, width = 0;  // pixels
};
std::string image_event(const EventHead& e, const std::string& tag, const EncodedImage& image);
std::string text_event(const EventHead& e, const std::string& tag, const std::string& markdown);

}  // namespace simclr
