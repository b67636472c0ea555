#include "src/comm/agreement.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <vector>

#include "src/comm/gather.h"
#include "src/comm/topology.h"

namespace simclr {
namespace {

constexpr size_t kLongestShown = 4000;  // room for the faults of a whole configuration

// FNV-1a, 64 bits: distinguishes texts; not safe against forgery.
uint64_t hash_of(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

// What a rank says in the first round; texts follow only when they are needed.
struct Statement {
  int32_t code = 0;   // exit code of its error; 0: none
  int32_t shown = 0;  // length of its text, cut
  int64_t length = 0;
  uint64_t hash = 0;
  std::array<char, 64> host{};
};

Statement state(int code, std::string_view text) {
  Statement statement{.code = code,
                      .shown = static_cast<int32_t>(std::min(text.size(), kLongestShown)),
                      .length = std::ssize(text),
                      .hash = hash_of(text)};
  const std::string host = host_name();
  std::memcpy(statement.host.data(), host.data(), std::min(host.size(), statement.host.size() - 1));
  return statement;
}

bool same_text(const Statement& a, const Statement& b) {
  return a.length == b.length && a.hash == b.hash;
}

std::string text_of_rank(Collectives& collectives, int rank, int32_t length, std::string_view mine) {
  std::string text(length, '\0');
  if (collectives.rank() == rank) text = mine.substr(0, length);
  collectives.broadcast(std::span<char>(text), rank);
  return text;
}

}  // namespace

Error as_error(std::exception_ptr caught) {
  try {
    std::rethrow_exception(std::move(caught));
  } catch (const Error& e) {
    return e;
  } catch (const std::bad_alloc&) {
    return Error(ExitCode::kDevice,
                 "out of memory; use fewer or smaller images per rank (train.global_batch), or more ranks");
  } catch (const std::exception& e) {
    return Error(ExitCode::kOther, std::string("internal error: ") + e.what() + "; please report it");
  } catch (...) {
    return Error(ExitCode::kOther, "internal error: an exception of unknown type; please report it");
  }
}

namespace {

void throw_if_any_failed(Collectives& collectives, const std::optional<Error>& mine) {
  const std::string_view text = mine ? std::string_view(mine->what()) : std::string_view();
  const std::vector<Statement> all = gather(collectives, state(mine ? static_cast<int>(mine->code()) : 0, text));
  const auto first = std::find_if(all.begin(), all.end(), [](const Statement& s) { return s.code != 0; });
  if (first == all.end()) return;
  const int rank = static_cast<int>(first - all.begin());
  const std::string message = text_of_rank(collectives, rank, first->shown, text);
  const auto failed = std::count_if(all.begin(), all.end(), [](const Statement& s) { return s.code != 0; });
  const bool alike = std::all_of(all.begin(), all.end(),
                                 [&](const Statement& s) { return s.code == first->code && same_text(s, *first); });
  const auto code = static_cast<ExitCode>(first->code);
  if (alike) throw AgreedError(code, message);
  const std::string others = failed > 1 ? fmt::format(" ({} of {} ranks failed)", failed, all.size()) : "";
  throw AgreedError(code, fmt::format("rank {} ({}): {}{}", rank, first->host.data(), message, others));
}

}  // namespace

void agree(Collectives& collectives, const std::optional<Error>& mine) {
  try {
    throw_if_any_failed(collectives, mine);
  } catch (const AgreedError&) {
    throw;
  } catch (const std::exception&) {
    if (mine) throw Error(*mine);  // e.g. a broken device also breaks the exchange of its error
    throw;
  }
}

void require_equal(Collectives& collectives, ExitCode code, std::string_view name, std::string_view value,
                   std::string_view advice) {
  const std::vector<Statement> all = gather(collectives, state(0, value));
  if (std::all_of(all.begin(), all.end(), [&](const Statement& s) { return same_text(s, all[0]); })) return;
  std::string message = fmt::format("{} differs between ranks: ", name);
  std::vector<bool> listed(all.size());
  for (size_t r = 0; r < all.size(); ++r) {
    if (listed[r]) continue;
    const std::string text = text_of_rank(collectives, static_cast<int>(r), all[r].shown, value);
    std::string ranks;
    int count = 0;
    for (size_t other = r; other < all.size(); ++other) {
      if (!same_text(all[other], all[r])) continue;
      listed[other] = true;
      if (++count <= 8) ranks += fmt::format("{}{}", count == 1 ? "" : ", ", other);
    }
    if (count > 8) ranks += fmt::format(" and {} more", count - 8);
    message += fmt::format("rank{} {} ({}): {}; ", count > 1 ? "s" : "", ranks, all[r].host.data(), text);
  }
  throw AgreedError(code, message + std::string(advice));
}

}  // namespace simclr
