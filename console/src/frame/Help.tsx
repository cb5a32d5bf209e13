import { Modal } from "@mantine/core";
import { useFocusBack } from "../parts/use-focus-back.ts";

const KEYS = [
  ["Ctrl K", "Go to a page, or to anything by its name or id, and do what the page offers"],
  ["j, k", "Next and previous row of a list"],
  ["Enter", "Open the row"],
  ["x", "Choose the row, where several can be decided at once"],
  ["Ctrl Enter", "Send the message to an agent, or add the comment, that you have typed"],
  ["Shift ↓ ↑", "Choose several lines of a diff, from the number of the first one"],
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
        The folder docs of the server's sources has a page about each part, and docs/console.md about this
        one.
      </p>
    </Modal>
  );
}
