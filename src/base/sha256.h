// SHA-256 over a stream of bytes (OpenSSL), written as 64 lower-case hexadecimal digits. Finds damage; it is not a
// signature: who can change a file can change its checksum as well.
#pragma once

#include <openssl/evp.h>

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace simclr {

class Sha256 {
 public:
  static constexpr size_t kHexDigits = 64;

  Sha256();
  void update(const void* data, size_t bytes);
  void update(std::string_view text) { update(text.data(), text.size()); }
  std::string hex();  // ends the stream: no update() after it

 private:
  struct Free {
    void operator()(EVP_MD_CTX* context) const noexcept { EVP_MD_CTX_free(context); }
  };
  std::unique_ptr<EVP_MD_CTX, Free> context_;
};

}  // namespace simclr
