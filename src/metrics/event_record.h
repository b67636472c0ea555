// Encodes TensorBoard's event files: the framing and the few messages that are written. Field numbers are from
// tensorflow/core/util/event.proto and tensorflow/core/framework/{summary,tensor,tensor_shape,types}.proto, the framing
// is from tensorflow/core/lib/io/record_writer.h. Not a general protocol-buffer library.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace simclr {

// CRC-32C (Castagnoli, RFC 3720 appendix B.4): 0xE3069283 for "123456789".
uint32_t crc32c(std::string_view bytes);

// u64 length, u32 masked CRC of the length, the bytes, u32 masked CRC of the bytes; little-endian. A CRC is masked as
// ((crc >> 15) | (crc << 17)) + 0xa282ead8, because the CRC of data that contain CRCs is unreliable.
std::string frame_record(std::string_view bytes);

// The fields that every Event message has (event.proto). Each function below returns a message without framing.
struct EventHead {
  double wall_time_s = 0;  // since 1970
  int64_t step = 0;
};
std::string version_event(double wall_time_s);        // first in each file: file_version "brain.Event:2"
std::string session_start_event(const EventHead& e);  // invalidates this step and later ones in earlier files
std::string scalars_event(const EventHead& e, const std::vector<std::pair<std::string, double>>& scalars);

struct EncodedImage {
  std::string png;
  int64_t height = 0, width = 0;  // pixels
};
std::string image_event(const EventHead& e, const std::string& tag, const EncodedImage& image);
std::string text_event(const EventHead& e, const std::string& tag, const std::string& markdown);

}  // namespace simclr
