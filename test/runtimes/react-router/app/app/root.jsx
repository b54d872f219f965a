import { Outlet } from 'react-router';

export default function Root() {
  return (
    <html lang="en">
      <head>
        <title>headgate</title>
      </head>
      <body>
        <Outlet />
      </body>
    </html>
  );
}
