/**
 * The completion script for bash. It passes what is typed as words: a shell that evaluated them would carry out the
 * commands in them.
 */
export const BASH_COMPLETION = `# bash completion for chartroom

__chartroom_complete() {
    local cur words cword
    _get_comp_words_by_ref -n "=:" cur words cword

    # Lines of a word and, behind a tab, its description; last a colon and what to complete where there are no words.
    local lines line
    mapfile -t lines < <(chartroom complete -- "\${words[@]:1:cword}" 2>/dev/null)
    COMPREPLY=()
    (( \${#lines[@]} > 0 )) || return
    case "\${lines[-1]}" in
        :0) ;;
        :16) compopt -o dirnames +o default ;;
        *) compopt +o default ;;
    esac
    unset 'lines[-1]'
    for line in "\${lines[@]}"; do
        COMPREPLY+=("\${line%%$'\\t'*}")
    done
}

complete -o default -F __chartroom_complete chartroom
`;
