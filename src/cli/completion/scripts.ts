/**
 * What a shell loads once. Each script only hands the words over to `mooring __complete` and the answers back, so that it
 * stays right when commands and flags change. The program asked is the one on the line: a checkout completes itself.
 */

const BASH = `# bash completion for mooring: source <(mooring completion bash)
_mooring() {
  local line="\${COMP_LINE:0:COMP_POINT}" value description file
  local -a words
  read -ra words <<< "$line"
  [[ "$line" == *[[:space:]] ]] && words+=("")
  local last="\${words[\${#words[@]}-1]}"
  # Bash replaces only what follows the last "=", which it takes for a break between words.
  local kept="" typed="\${last##*=}"
  [[ "$last" == *=* ]] && kept="\${last%"$typed"}"
  COMPREPLY=()
  while IFS=$'\\t' read -r value description; do
    case "$value" in
      :files)
        compopt -o filenames 2>/dev/null
        while IFS= read -r file; do COMPREPLY+=("$file"); done < <(compgen -f -- "$typed")
        ;;
      :directories)
        compopt -o filenames 2>/dev/null
        while IFS= read -r file; do COMPREPLY+=("$file"); done < <(compgen -d -- "$typed")
        ;;
      :nospace) compopt -o nospace 2>/dev/null ;;
      *) COMPREPLY+=("\${value#"$kept"}") ;;
    esac
  done < <("\${words[0]/#\\~/$HOME}" __complete -- "\${words[@]:1}" 2>/dev/null)
}
complete -F _mooring mooring`;

const ZSH = `#compdef mooring
# zsh completion for mooring: source <(mooring completion zsh), or a file _mooring in a folder of $fpath
_mooring() {
  local value description
  local -a found space
  while IFS=$'\\t' read -r value description; do
    case "$value" in
      :files) compset -P '*='; _files ;;
      :directories) compset -P '*='; _files -/ ;;
      :nospace) space=(-S '') ;;
      *) found+=("\${value//:/\\\\:}\${description:+:$description}") ;;
    esac
  done < <("\${(Q)words[1]/#\\~/$HOME}" __complete -- "\${(@)words[2,CURRENT-1]}" "$PREFIX" 2>/dev/null)
  (( $#found )) && _describe mooring found "\${space[@]}"
}
if [[ "\${funcstack[1]}" == _mooring ]]; then _mooring "$@"; else compdef _mooring mooring; fi`;

const FISH = `# fish completion for mooring: mooring completion fish | source
function __mooring_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    for line in ($words[1] __complete -- $words[2..-1] "$current" 2>/dev/null)
        switch $line
            case ':files'
                __fish_complete_path "$current"
            case ':directories'
                __fish_complete_directories "$current"
            case ':*'
            case '*'
                echo $line
        end
    end
end
complete -c mooring -f -a '(__mooring_complete)'`;

export const SHELLS = ["bash", "zsh", "fish"] as const;
export type Shell = (typeof SHELLS)[number];

export const SCRIPTS: Readonly<Record<Shell, string>> = { bash: BASH, zsh: ZSH, fish: FISH };
