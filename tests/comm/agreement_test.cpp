// Agreement, equality of facts, and the control channel, between ranks that are threads.
#include "src/comm/agreement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <new>
#include <string>
#include <vector>

#include "src/comm/control_channel.h"
#include "src/comm/topology.h"
#include "tests/harness/thread_collectives.h"

namespace simclr {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

// What agree() threw on each rank, as "code text"; "" where it returned.
std::vector<std::string> outcomes(int size, const std::function<void(Collectives&)>& act) {
  std::vector<std::string> texts(size);
  run_ranks(size, [&](Collectives& c) {
    try {
      act(c);
    } catch (const AgreedError& e) {
      texts[c.rank()] = fmt::format("{} {}", static_cast<int>(e.code()), e.what());
    }
    c.barrier();  // whatever happened, the ranks are still together
  });
  return texts;
}

TEST(Agree, ReturnsWhenNoRankHasAnError) {
  EXPECT_THAT(outcomes(3, [](Collectives& c) { agree(c, std::nullopt); }), ElementsAre("", "", ""));
}

TEST(Agree, TheLowestFailingRanksErrorIsEverybodys) {
  const std::string expected = fmt::format("3 rank 1 ({}): image 1 is broken (2 of 4 ranks failed)", host_name());
  const auto texts = outcomes(4, [](Collectives& c) {
    std::optional<Error> mine;
    if (c.rank() % 2 == 1) mine = Error(ExitCode::kData, fmt::format("image {} is broken", c.rank()));
    agree(c, mine);
  });
  EXPECT_THAT(texts, ElementsAre(expected, expected, expected, expected));
}

TEST(Agree, AnErrorThatAllShareNamesNoRank) {
  const auto texts = outcomes(2, [](Collectives& c) { agree(c, Error(ExitCode::kUsage, "no such file")); });
  EXPECT_THAT(texts, ElementsAre("2 no such file", "2 no such file"));
}

TEST(Agree, OneFailingRankIsNamed) {
  const auto texts = outcomes(2, [](Collectives& c) {
    agree(c, c.rank() == 1 ? std::optional<Error>(Error(ExitCode::kOutput, "disk full")) : std::nullopt);
  });
  EXPECT_EQ(texts[0], texts[1]);
  EXPECT_EQ(texts[0], fmt::format("6 rank 1 ({}): disk full", host_name()));
}

// A device that an error has broken cannot carry the news of it.
class BrokenCollectives : public ForwardingCollectives {
 public:
  using ForwardingCollectives::ForwardingCollectives;
  void all_gather(ConstTypedSpan, TypedSpan) override { fail(ExitCode::kDevice, "the copy failed"); }
};

TEST(Agree, WhatBrokeTheCollectivesIsTheReason) {
  run_ranks(1, [](Collectives& c) {
    BrokenCollectives broken(c);
    const auto thrown = [&](const std::optional<Error>& mine) -> std::string {
      try {
        agree(broken, mine);
      } catch (const AgreedError&) {
        return "agreed";
      } catch (const Error& e) {
        return fmt::format("{} {}", static_cast<int>(e.code()), e.what());
      }
      return "nothing";
    };
    EXPECT_EQ(thrown(Error(ExitCode::kData, "the kernel failed")), "3 the kernel failed");
    EXPECT_EQ(thrown(std::nullopt), "4 the copy failed");
  });
}

TEST(AgreeOn, ReturnsTheValueOrTheCaughtError) {
  run_ranks(2, [](Collectives& c) { EXPECT_EQ(agree_on(c, [&] { return 10 + c.rank(); }), 10 + c.rank()); });
  const auto texts = outcomes(2, [](Collectives& c) {
    agree_on(c, [&]() -> int {
      if (c.rank() == 0) throw std::bad_alloc();
      throw std::out_of_range("vector::at");
    });
  });
  EXPECT_THAT(texts[1], AllOf(HasSubstr("4 rank 0"), HasSubstr("out of memory")));
  EXPECT_EQ(as_error(std::make_exception_ptr(std::out_of_range("vector::at"))).code(), ExitCode::kOther);
  EXPECT_EQ(as_error(std::make_exception_ptr(7)).code(), ExitCode::kOther);
}

TEST(RequireEqual, ListsWhichRanksHaveWhat) {
  EXPECT_THAT(outcomes(2, [](Collectives& c) { require_equal(c, ExitCode::kUsage, "version", "1.0", "-"); }),
              ElementsAre("", ""));
  const auto texts = outcomes(4, [](Collectives& c) {
    require_equal(c, ExitCode::kUsage, "configuration", c.rank() == 2 ? "longer 77c0" : "5ab1", "use one file");
  });
  const std::string host = host_name();
  const std::string expected = fmt::format(
      "2 configuration differs between ranks: ranks 0, 1, 3 ({}): 5ab1; rank 2 ({}): longer 77c0; use one file", host,
      host);
  EXPECT_THAT(texts, ElementsAre(expected, expected, expected, expected));
}

TEST(RequireEqual, SeesADifferenceBeyondWhatItShows) {
  const auto texts = outcomes(2, [](Collectives& c) {
    require_equal(c, ExitCode::kUsage, "list", std::string(2000, 'x') + std::to_string(c.rank()), "-");
  });
  EXPECT_THAT(texts[0], HasSubstr("list differs"));
}

Context& host() {
  thread_local Context context(1);
  return context;
}

TEST(ControlChannel, ActsAtOnceOnACpu) {
  run_ranks(2, [](Collectives& c) {
    ControlChannel channel(c, host());
    for (int64_t step = 1; step <= 4; ++step) {
      channel.post({.step = step, .stop_signal = step == 3 && c.rank() == 1 ? 15 : 0});
      const auto decisions = channel.decisions_after(step);
      ASSERT_EQ(decisions.size(), step == 3 ? 1u : 0u);
      if (step == 3) {
        EXPECT_EQ(decisions[0].step, 3);
      }
    }
  });
}

// On a GPU with steps of 10 s two steps are half a minute: the lag is bounded in seconds.
TEST(ControlChannel, LongStepsHaveNoDelay) {
  run_ranks(2, [](Collectives& c) {
    ControlChannel channel(c, host(), 2);
    EXPECT_FALSE(channel.step_s());
    const auto after = [&](int64_t step, uint32_t ms, int signal) {
      channel.post({.step = step, .stop_signal = signal, .step_ms = c.rank() == 1 ? ms : 1});
      return channel.decisions_after(step).size();
    };
    EXPECT_EQ(after(1, 10000, 0), 0u);
    EXPECT_EQ(after(2, 10000, 15), 0u);
    EXPECT_FALSE(channel.step_s()) << "no word has been read";
    EXPECT_EQ(after(3, 10000, 15), 2u) << "the word of step 1 says it, so those of 2 and 3 are read as well";
    EXPECT_EQ(*channel.step_s(), 10);
    EXPECT_EQ(after(4, 10000, 15), 1u);
    EXPECT_EQ(after(5, 20, 0), 0u);
    EXPECT_EQ(after(6, 20, 15), 0u) << "short steps are read two steps later again";
    EXPECT_EQ(after(7, 20, 0), 0u);
    EXPECT_EQ(after(8, 20, 0), 1u);
  });
}

TEST(ControlChannel, APollWithinAStepIsReadAtOnceAndLeavesTheWordsAlone) {
  run_ranks(2, [](Collectives& c) {
    ControlChannel channel(c, host(), 2);
    channel.post({.step = 1, .error_code = c.rank() == 0 ? 6 : 0});
    EXPECT_FALSE(channel.poll({.step = 1}));
    const auto asked = channel.poll({.step = 1, .stop_signal = c.rank() == 1 ? 10 : 0});
    ASSERT_TRUE(asked);
    EXPECT_EQ(asked->stop_signal, 10);
    EXPECT_EQ(asked->stop_rank, 1);
    const auto words = channel.drain();
    ASSERT_EQ(words.size(), 1u);
    EXPECT_EQ(words[0].error_code, 6);
  });
}

TEST(ControlChannel, ActsExactlyTwoStepsLaterOnAGpu) {
  run_ranks(4, [](Collectives& c) {
    ControlChannel channel(c, host(), 2);
    for (int64_t step = 7; step <= 12; ++step) {
      ControlWord word{.step = step};
      if (step == 9 && c.rank() >= 2) word.stop_signal = 10 + c.rank();
      channel.post(word);
      const auto decisions = channel.decisions_after(step);
      ASSERT_EQ(decisions.size(), step == 11 ? 1u : 0u) << "step " << step;
      if (decisions.empty()) continue;
      EXPECT_EQ(decisions[0].step, 9);
      EXPECT_EQ(decisions[0].stop_rank, 2);
      EXPECT_EQ(decisions[0].stop_signal, 12);
      EXPECT_FALSE(decisions[0].non_finite());
    }
    EXPECT_TRUE(channel.drain().empty());
  });
}

TEST(ControlChannel, CarriesNonFiniteErrorsAndHashes) {
  run_ranks(4, [](Collectives& c) {
    ControlChannel channel(c, host(), 2);
    channel.post({.step = 1, .non_finite = c.rank() % 2 == 1});
    channel.post({.step = 2, .hash_due = 1, .weights_hash = c.rank() == 3 ? 0xbadu : 0x600du});
    channel.post({.step = 3, .error_code = c.rank() == 2 ? 3 : 0, .hash_due = 1, .weights_hash = 5});
    const auto first = channel.decisions_after(3);
    ASSERT_EQ(first.size(), 1u);
    EXPECT_THAT(first[0].non_finite_ranks, ElementsAre(1, 3));
    const std::vector<Decision> rest = channel.drain();
    ASSERT_EQ(rest.size(), 2u);
    EXPECT_THAT(rest[0].differing_hashes, ElementsAre(0x600d, 0x600d, 0x600d, 0xbad));
    EXPECT_EQ(rest[0].describe_hashes(),
              "the weights of the ranks differ after step 2: rank 0, 1, 2: 000000000000600d; rank 3: 0000000000000bad");
    EXPECT_TRUE(rest[1].failed());
    EXPECT_EQ(rest[1].error_rank, 2);
    EXPECT_EQ(rest[1].error_code, 3);
    EXPECT_FALSE(rest[1].hashes_differ());
    EXPECT_TRUE(channel.drain().empty());
  });
}

TEST(ControlChannel, RefusesRanksAtDifferentSteps) {
  const auto post_own_step = [](Collectives& c) {
    ControlChannel channel(c, host());
    channel.post({.step = c.rank()});
    channel.drain();
  };
  EXPECT_THROW(run_ranks(2, post_own_step), Error);
  run_ranks(1, [](Collectives& c) {
    ControlChannel channel(c, host());
    channel.post({.step = 1});
    EXPECT_THROW(channel.post({.step = 3}), Error) << "a step was left out";
    channel.post({.step = 2});
    channel.post({.step = 3});
    EXPECT_THROW(channel.post({.step = 4}), Error) << "step 1 was not read";
  });
}

}  // namespace
}  // namespace simclr
