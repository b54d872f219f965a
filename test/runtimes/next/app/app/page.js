export default function Page() {
  return 'page';
}
