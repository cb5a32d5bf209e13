import { Drawer } from "@mantine/core";
import { useFocusBack } from "../parts/use-focus-back.ts";
import { Sidebar } from "./Sidebar.tsx";

/** The sidebar of a narrow window. */
export default function SideDrawer({ onClose }: { readonly onClose: () => void }) {
  useFocusBack();
  return (
    <Drawer
      opened
      onClose={onClose}
      size={240}
      title="Chartroom"
      transitionProps={{ duration: 120 }}
      closeButtonProps={{ "aria-label": "Close the menu" }}
    >
      <Sidebar />
    </Drawer>
  );
}
