// xml_texts.h: the few texts that Serin reads out of an answer of S3, without a parser of XML: it never resolves an entity of the document.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace serin::registry {

/// The texts of all elements of that name that contain no other element, in order, with their references (&amp;, &#34;) replaced. Anything that
/// is no XML has none.
std::vector<std::string> xml_texts(std::string_view xml, std::string_view name);
/// The first one, or empty.
std::string xml_text(std::string_view xml, std::string_view name);

}  // namespace serin::registry
