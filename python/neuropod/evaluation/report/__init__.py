"""What people read: tables for the terminal, and pages with pictures."""
