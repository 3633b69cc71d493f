#include "router/outcomes/prediction_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "runtime/base/number.h"

namespace serin::router {

void PredictionLog::open() {
  if (free_.empty()) free_.insert(places_++);
  const size_t place = *free_.begin();
  free_.erase(place);
  to_empty_.erase(place);
  Segment& opened = segments_.emplace_back(Segment{.number = next_++, .place = place});
  opened.text.reserve(kSegment);
  opened.text = fmt::format("{}\n", opened.number);  // so that their order is known
  give_up_oldest();
}

uint32_t PredictionLog::append(std::string_view line) {
  if (segments_.empty() || segments_.back().text.size() + line.size() >= kSegment) open();
  Segment& segment = segments_.back();
  segment.text += line;
  segment.text += '\n';
  segment.changed = true;
  return segment.number;
}

void PredictionLog::keep_from(uint32_t segment) {
  while (!segments_.empty() && segments_.front().number < segment) {
    free_.insert(segments_.front().place);
    to_empty_.insert(segments_.front().place);
    segments_.pop_front();
  }
}

/// A store that takes nothing must not fill the memory.
void PredictionLog::give_up_oldest() {
  if (static_cast<size_t>(std::ranges::count_if(segments_, &Segment::changed)) <= kMostUnwritten) return;
  Segment& oldest = *std::ranges::find_if(segments_, &Segment::changed);
  oldest.changed = false;
  oldest.text = {};
}

std::vector<PredictionLog::Note> PredictionLog::unwritten() {
  std::vector<Note> notes;
  for (const size_t place : std::exchange(to_empty_, {})) notes.push_back({.place = place});
  for (Segment& segment : segments_) {
    if (!std::exchange(segment.changed, false)) continue;
    const bool full = &segment != &segments_.back();
    notes.push_back({.place = segment.place, .text = full ? std::exchange(segment.text, {}) : segment.text, .segment = segment.number});
  }
  return notes;
}

void PredictionLog::write_again(std::vector<Note> notes) {
  for (Note& note : notes) {
    if (note.text.empty()) {
      if (free_.contains(note.place)) to_empty_.insert(note.place);
      continue;
    }
    const auto segment = std::ranges::find(segments_, note.segment, &Segment::number);
    if (segment == segments_.end()) continue;
    segment->changed = true;
    if (segment->text.empty()) segment->text = std::move(note.text);
  }
}

std::vector<PredictionLog::Line> PredictionLog::restore(std::vector<Note> notes) {
  for (Note& note : notes) {
    places_ = std::max(places_, note.place + 1);
    free_.insert(note.place);
    const size_t end = note.text.find('\n');
    const auto number = parse_number<uint32_t>(std::string_view(note.text).substr(0, end));
    if (end == std::string::npos || !number) continue;
    free_.erase(note.place);
    segments_.push_back({.number = *number, .place = note.place, .text = std::move(note.text)});
  }
  std::ranges::sort(segments_, {}, &Segment::number);
  std::vector<Line> lines;
  for (Segment& segment : segments_) {
    std::string_view text = segment.text;
    text.remove_prefix(text.find('\n') + 1);
    for (size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
      lines.push_back({.text = std::string(text.substr(0, end)), .segment = segment.number});
      text.remove_prefix(end + 1);
    }
    if (&segment != &segments_.back()) segment.text = {};
    next_ = segment.number + 1;
  }
  return lines;
}

}  // namespace serin::router
