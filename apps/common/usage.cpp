#include "apps/common/usage.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "framework/run/words.hpp"

namespace isohalo {

namespace {

std::vector<const CLI::App*> subcommands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

std::vector<std::string> commands_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* sub : subcommands_of(app)) names.push_back(sub->get_name());
  return names;
}

std::vector<std::string> options_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const auto& name : option->get_lnames()) names.push_back("--" + name);
    for (const auto& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

/// The command that the first arguments name, its full name, and the argument that should name one but does not.
struct Command {
  const CLI::App* app;
  std::string name, unknown;
};

Command command_of(const CLI::App& app, const std::vector<std::string>& arguments) {
  Command c{&app, app.get_name(), ""};
  for (const auto& word : arguments) {
    const auto commands = subcommands_of(*c.app);
    if (commands.empty() || word.starts_with("-")) break;
    const auto sub =
        std::find_if(commands.begin(), commands.end(), [&](const CLI::App* a) { return a->get_name() == word; });
    if (sub == commands.end()) {
      c.unknown = word;
      break;
    }
    c.app = *sub;
    c.name += " " + word;
  }
  return c;
}

}  // namespace

std::string usage_error(const CLI::App& app, const std::vector<std::string>& arguments,
                        const CLI::ParseError& error) {
  const Command command = command_of(app, arguments);
  const auto names = commands_of(*command.app);
  const std::string see = fmt::format(" (see {} --help)", command.name);
  if (!command.unknown.empty())
    return fmt::format("{} has no command \"{}\"{} (its commands: {})", command.name, shortened(command.unknown),
                       did_you_mean(nearest_word(command.unknown, names)), fmt::join(names, ", "));
  for (const auto& word : app.remaining(true)) {
    if (!word.starts_with("-")) continue;
    const std::string option = word.substr(0, word.find('='));
    const auto options = options_of(*command.app);
    if (std::find(options.begin(), options.end(), option) != options.end())
      return fmt::format("{}: {} stands behind --, where no option may be: put it before", command.name, option);
    return fmt::format("{} has no option {}{}{}", command.name, shortened(option),
                       did_you_mean(nearest_word(option, options)), see);
  }
  if (!names.empty()) return fmt::format("{} needs a command: {}{}", command.name, fmt::join(names, ", "), see);
  return shortened(error.what(), 400) + see;
}

}  // namespace isohalo
