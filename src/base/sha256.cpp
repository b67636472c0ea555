// Thin over OpenSSL's EVP interface, which picks the processor's own SHA instructions.
#include "src/base/sha256.h"

#include <fmt/format.h>

#include <array>

#include "kernels/common/error.h"

namespace simclr {

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  SIMCLR_CHECK(context_ && EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1,
               "OpenSSL offers no SHA-256 here");
}

void Sha256::update(const void* data, size_t bytes) {
  SIMCLR_CHECK(EVP_DigestUpdate(context_.get(), data, bytes) == 1, "SHA-256 over {} bytes", bytes);
}

std::string Sha256::hex() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int bytes = 0;
  SIMCLR_CHECK(EVP_DigestFinal_ex(context_.get(), digest.data(), &bytes) == 1 && bytes == kHexDigits / 2,
               "SHA-256 gave {} bytes", bytes);
  std::string text;
  for (unsigned int i = 0; i < bytes; ++i) text += fmt::format("{:02x}", digest[i]);
  return text;
}

}  // namespace simclr
