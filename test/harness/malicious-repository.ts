/** A name with a line break and a sequence that a terminal obeys, in a tree of {@link maliciousRepository}. */
export const ODD_NAME = "odd\n\u001b[31mname";

/**
 * Returns a script that makes the repository in which it runs malicious: links out of it, hooks, filters, drivers,
 * remotes, a file `.git` in it, and names that a terminal obeys. All of it starts a program, or leads elsewhere.
 *
 * @param mark a file that the program makes
 * @param elsewhere folder of another repository
 */
export function maliciousRepository(mark: string, elsewhere: string): string {
  return `
echo two > b.txt; ln -s /etc/passwd passwd; ln -s / root; mkdir sub
printf 'x\\n' > "$(printf 'odd\\n\\033[31mname')"
git add .; git -c user.name=a -c user.email=a@example.org commit -qm 'Add b'
printf 'gitdir: ${elsewhere}\\n' > sub/.git; echo '* filter=trap diff=trap' > .gitattributes
printf '#!/bin/sh\\ntouch ${mark}\\nexit 1\\n' > .git/trap; chmod +x .git/trap
for hook in pre-commit pre-push post-index-change reference-transaction; do cp .git/trap .git/hooks/$hook; done
for key in core.fsmonitor core.sshCommand core.askPass credential.helper diff.external diff.trap.command \\
  diff.trap.textconv filter.trap.clean filter.trap.process; do git config $key "$PWD/.git/trap"; done
for key in remote.origin.url remote.origin.pushurl; do git config $key 'file://${elsewhere}'; done
git config 'url.file://${elsewhere}.insteadOf' http; git config http.proxy http://127.0.0.1:9
rm -f ${mark}`;
}
