#pragma once
/// Text of others (names and attributes in files, file names, keys, command lines) where it is shown to people.

#include <string>
#include <string_view>
#include <vector>

#include "datatypes/error.hpp"

namespace isohalo {

/// The text on one line that moves no cursor and reorders nothing: control bytes, line and paragraph separators,
/// marks of direction and of no width become \n, \r, \t, \xHH, \uHHHH or \UHHHHHHHH, and so does each byte that is
/// no UTF-8. A backslash stays as it is: the result is for reading, and making it twice changes nothing. Local.
std::string printable(std::string_view text);

/// The same as the content of XML text or of an attribute in double quotes. What XML cannot hold at all becomes
/// '?'.
std::string xml_text(std::string_view text);

/// Several errors at once, each on a line of its own, made printable: the only error whose text has lines. Where
/// errors are printed, a line break within any other text is shown as "\n".
class ErrorList : public UsageError {
 public:
  explicit ErrorList(const std::vector<std::string>& lines);
};

}  // namespace isohalo
