import { Modal } from "@mantine/core";
import { useFocusBack } from "../parts/use-focus-back.ts";

const KEYS = [
  ["Ctrl K", "Go to a page or anything else by name or id, or run an action of the page"],
  ["j, k", "Next and previous row of a list"],
  ["Enter", "Open the row"],
  ["x", "Select the row, where several can be decided at once"],
  ["Ctrl Enter", "Send the message or add the comment that you typed"],
  ["Shift ↓ ↑", "Select several lines of a diff, starting from the first line number"],
  ["?", "This help"],
] as const;

/** Lists the keyboard shortcuts, and links to the documentation. */
export default function Help({ onClose }: { readonly onClose: () => void }) {
  useFocusBack();
  return (
    <Modal
      opened
      onClose={onClose}
      title="Help"
      transitionProps={{ duration: 120 }}
      closeButtonProps={{ "aria-label": "Close the help" }}
    >
      <table className="keys">
        <tbody>
          {KEYS.map(([key, meaning]) => (
            <tr key={key}>
              <th scope="row">
                <kbd>{key}</kbd>
              </th>
              <td>{meaning}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <p>
        <a href="/docs/api">Reference of the operations</a>
      </p>
      <p className="dim">
        The docs folder of the sources has a page about each part; docs/console.md describes this console.
      </p>
    </Modal>
  );
}
