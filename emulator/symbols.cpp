// Walks the program headers of the loaded files; the names of static functions stand only in the files' own tables.
#include "emulator/symbols.h"

#include <cxxabi.h>
#include <link.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <unordered_map>
#include <vector>

// Of the C library: the calling thread's address of a thread-local variable.
struct TlsIndex {
  unsigned long module;
  unsigned long offset;
};
extern "C" void* __tls_get_addr(TlsIndex*);  // NOLINT(readability-identifier-naming)

namespace simclr::emulator {

namespace {

struct File {
  uintptr_t wanted = 0;
  uintptr_t base = 0;
  std::string path;
  size_t tls_module = 0;
  size_t tls_bytes = 0;
  bool in_program = false;
};

// For dl_iterate_phdr: stops at the file that contains `wanted`. The program itself comes first and has no name.
int visit_file(dl_phdr_info* info, size_t, void* data) {
  auto& file = *static_cast<File*>(data);
  bool here = false;
  size_t tls_bytes = 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = info->dlpi_phdr[i];
    if (header.p_type == PT_LOAD && file.wanted - (info->dlpi_addr + header.p_vaddr) < header.p_memsz) here = true;
    if (header.p_type == PT_TLS) tls_bytes = header.p_memsz;
  }
  if (!here) return 0;
  file.base = info->dlpi_addr;
  file.in_program = *info->dlpi_name == '\0';
  file.path = file.in_program ? "/proc/self/exe" : info->dlpi_name;
  file.tls_module = info->dlpi_tls_modid;
  file.tls_bytes = info->dlpi_tls_modid != 0 ? tls_bytes : 0;
  return 1;
}

File find_file(const void* address) {
  File file;
  file.wanted = reinterpret_cast<uintptr_t>(address);
  dl_iterate_phdr(visit_file, &file);
  return file;
}

template <typename T>
std::vector<T> read_table(std::ifstream& in, uint64_t offset, uint64_t bytes) {
  std::vector<T> table(bytes / sizeof(T));
  in.seekg(static_cast<std::streamoff>(offset));
  in.read(reinterpret_cast<char*>(table.data()), static_cast<std::streamsize>(table.size() * sizeof(T)));
  return table;
}

// The function at `address` (relative to the file's base) by the file's symbol table, or "".
std::string find_symbol(const std::string& path, uintptr_t address) {
  std::ifstream in(path, std::ios::binary);
  ElfW(Ehdr) header{};
  in.read(reinterpret_cast<char*>(&header), sizeof header);
  if (!in || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return "";
  const auto sections = read_table<ElfW(Shdr)>(in, header.e_shoff, uint64_t{header.e_shnum} * sizeof(ElfW(Shdr)));
  for (const auto& section : sections) {
    if (section.sh_type != SHT_SYMTAB || section.sh_link >= sections.size()) continue;
    const auto symbols = read_table<ElfW(Sym)>(in, section.sh_offset, section.sh_size);
    const auto& names = sections[section.sh_link];
    const auto text = read_table<char>(in, names.sh_offset, names.sh_size);
    for (const auto& symbol : symbols) {
      if (symbol.st_value == address && ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && symbol.st_name < text.size()) {
        return text.data() + symbol.st_name;
      }
    }
  }
  return "";
}

std::string demangle(const std::string& symbol) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status),
                                                         &std::free);
  std::string name = status == 0 ? text.get() : symbol;
  const std::string anonymous = "(anonymous namespace)::";
  for (size_t at = name.find(anonymous); at != std::string::npos; at = name.find(anonymous)) {
    name.erase(at, anonymous.size());
  }
  if (name.starts_with("void ")) name.erase(0, 5);  // the return type that templates carry
  return name.substr(0, name.find('('));
}

}  // namespace

std::string symbol_name(const void* function) {
  const File file = find_file(function);
  const std::string symbol = find_symbol(file.path, file.wanted - file.base);
  if (!symbol.empty()) return demangle(symbol);
  char text[32];
  std::snprintf(text, sizeof text, "at %p", function);
  return text;
}

StaticShared static_shared_of(const void* kernel) {
  static auto& known = *new std::unordered_map<const void*, File>;
  const auto found = known.find(kernel);
  const File& file = found != known.end() ? found->second : (known[kernel] = find_file(kernel));
  if (file.tls_bytes == 0) return {};
  TlsIndex index{file.tls_module, 0};
  return {.begin = __tls_get_addr(&index), .bytes = file.tls_bytes, .in_program = file.in_program};
}

}  // namespace simclr::emulator
