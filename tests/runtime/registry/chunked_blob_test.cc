#include "runtime/registry/chunked_blob.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "runtime/base/file.h"
#include "runtime/base/temporary_folder.h"
#include "runtime/registry/chunk_plan.h"
#include "runtime/registry/sha256.h"

namespace serin::registry {
namespace {

constexpr uint64_t kChunk = 1 << 20, kBytes = 2 * kChunk + 100;

struct ChunkedBlobTest : testing::Test {
  TemporaryFolder folder = TemporaryFolder::make("chunks").value();
  const std::string path = folder.path() + "/blob", unfinished = path + ".chunks";
  const std::string contents = std::string(kChunk, 'a') + std::string(kChunk, 'b') + std::string(100, 'c');

  std::shared_ptr<ChunkedBlob> open() { return ChunkedBlob::open(path, kBytes).value(); }
  void fill(ChunkedBlob& blob, size_t chunk, char state) {
    const Span span = chunk_span(kBytes, chunk);
    ASSERT_TRUE(blob.write(span.from, std::string_view(contents).substr(span.from, span.to - span.from)));
    ASSERT_TRUE(blob.put(chunk, state));
  }
};

TEST_F(ChunkedBlobTest, IsFinishedUnderItsNameWithItsBytesAlone) {
  const auto blob = open();
  for (const size_t chunk : {2, 0, 1}) fill(*blob, chunk, kTaken);
  EXPECT_EQ(blob->digest().value(), digest_of(contents));
  EXPECT_EQ(blob->states(), "ppp");
  ASSERT_TRUE(blob->finish());
  EXPECT_EQ(read_file(path, 2 * kBytes).value(), contents);
  EXPECT_FALSE(std::filesystem::exists(unfinished));
  EXPECT_EQ(blob->states(), "+++");
  EXPECT_EQ(blob->read(2).value(), std::string(100, 'c'));
  EXPECT_EQ(ChunkedBlob::whole(path, kBytes)->read(1).value(), std::string(kChunk, 'b'));
}

TEST_F(ChunkedBlobTest, AnotherStartGoesOnWithTheChunksThatAreThere) {
  {
    const auto blob = open();
    fill(*blob, 1, kRead);
    fill(*blob, 2, kTaken);
    ASSERT_TRUE(blob->put(0, kReading));  // killed in between
  }
  const auto again = open();
  EXPECT_EQ(again->states(), "-+p");
  EXPECT_EQ(again->read(1).value(), std::string(kChunk, 'b'));
}

TEST_F(ChunkedBlobTest, AFileWithoutLettersWasNearlyFinished) {
  ASSERT_TRUE(write_file_atomically(unfinished, contents));
  EXPECT_EQ(open()->states(), "ppp");
}

TEST_F(ChunkedBlobTest, AFileOfAnotherSizeBeginsAgain) {
  ASSERT_TRUE(write_file_atomically(unfinished, contents + "+++and more"));
  EXPECT_EQ(open()->states(), "---");
}

TEST_F(ChunkedBlobTest, AWholeFileThatIsGoneOrShorterIsNotRead) {
  const auto blob = ChunkedBlob::whole(path, kBytes);
  EXPECT_FALSE(blob->read(0));
  ASSERT_TRUE(write_file_atomically(path, contents.substr(0, kBytes - 1)));
  EXPECT_EQ(blob->read(2).error().code, Code::kNotFound);
  EXPECT_TRUE(blob->read(1));
}

TEST_F(ChunkedBlobTest, AFolderThatIsMissingIsNamed) {
  const auto none = ChunkedBlob::open(folder.path() + "/none/blob", kBytes);
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message, testing::HasSubstr("/none/blob.chunks"));
}

}  // namespace
}  // namespace serin::registry
